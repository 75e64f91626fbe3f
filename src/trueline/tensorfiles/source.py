"""What every reader gives: the tensors of a file or folder by name, and what could not be read."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from numpy.typing import NDArray

from trueline import limits
from trueline.errors import TruelineError, Unreadable
from trueline.reading import reading, shortened
from trueline.tensorfiles.number_formats import number_format
from trueline.tensorfiles.stored import Stored


class TensorEntry(msgspec.Struct, frozen=True):
    """One tensor. `bytes` is what it takes in the file; `trainable` is None where the file does not tell; `statistics`
    stands in for the values where only these were dumped (`max`, `min`, `mean`, `norm`)."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    trainable: bool | None = None
    statistics: dict[str, float] | None = None

    @property
    def count(self) -> int:
        return math.prod(self.shape)


class TensorSource:
    """The tensors of one file or folder, in the order in which they lie there.

    `model` is the part of the names that leads to the model's own tensors where others lie beside it (`model` for
    `{"model": ..., "optimizer": ...}`), '' where all of them are. `problems` names what could not be read.
    """

    def __init__(self, path: Path, kind: str, framework: str | None = None) -> None:
        self.path = path
        self.kind = kind
        self.framework = framework
        self.model = ""
        # What a format says beside its tensors.
        self.metadata: dict[str, str] = {}
        self.entries: list[TensorEntry] = []
        self.problems: list[str] = []
        self._open: dict[str, Callable[[], Stored]] = {}
        self._repetitions: dict[str, int] = {}
        self._bytes = 0
        self._most_bytes = max(limits.CLAIMED_BYTES, limits.CLAIMED_TIMES * path.stat().st_size) if path.is_file() else None

    def add(self, entry: TensorEntry, opened: Callable[[], Stored] | None) -> None:
        """Take up a tensor; a name that is there already gets the number of its repetition."""
        if len(self.entries) >= limits.TENSORS:
            raise Unreadable(f"{self.path} holds more than {limits.TENSORS:,} tensors, which is more than is read.")
        self._bytes += entry.bytes
        if self._most_bytes is not None and self._bytes > self._most_bytes:
            raise Unreadable(
                f"{self.path} describes tensors of more than {self._most_bytes:,} bytes together, far more than it holds. "
                "Copy or save it again."
            )
        name, count = entry.name, self._repetitions.get(entry.name, 1)
        while name in self._open:
            count += 1
            name = f"{entry.name}#{count}"
        self._repetitions[entry.name] = count
        self.entries.append(msgspec.structs.replace(entry, name=name))
        self._open[name] = opened or (lambda: _without_values(self.path, name))

    def problem(self, words: str) -> None:
        """Note what cannot be read."""
        if len(self.problems) < limits.PROBLEMS:
            self.problems.append(shortened(words))
        elif len(self.problems) == limits.PROBLEMS:
            self.problems.append(f"{self.path}: more than {limits.PROBLEMS:,} problems; the others are not listed.")

    def stored(self, name: str) -> Stored:
        """The tensor where it lies, to be read piece by piece."""
        if name not in self._open:
            raise TruelineError(f"{self.path} holds no tensor named {name!r}. List them with: trueline params {self.path}")
        with reading(self.path):
            return self._open[name]()

    def read(self, name: str) -> NDArray[Any]:
        """The whole tensor; bfloat16 and eight-bit floats come as float32. What is mapped must not be written to."""
        with reading(self.path):
            return self.stored(name).whole()

    @property
    def model_entries(self) -> list[TensorEntry]:
        """The tensors of the model alone, under the names that they have in the model."""
        if not self.model:
            return self.entries
        prefix = f"{self.model}."
        return [
            msgspec.structs.replace(entry, name=entry.name.removeprefix(prefix))
            for entry in self.entries
            if entry.name.startswith(prefix)
        ]

    def full_name(self, name: str) -> str:
        """The name in the file of a tensor of the model."""
        return f"{self.model}.{name}" if self.model else name


def entry_of(name: str, shape: tuple[int, ...], dtype: str, trainable: bool | None = None) -> TensorEntry:  # noqa: FBT001 - as in the struct
    return TensorEntry(name, shape, dtype, count_of(shape) * number_format(dtype).size, trainable)


def count_of(shape: tuple[int, ...]) -> int:
    """How many values a shape of a file asks for, if it is one."""
    if len(shape) > limits.DIMENSIONS:
        raise Unreadable(f"it has {len(shape):,} dimensions, and no more than {limits.DIMENSIONS} are read")
    # Lengths beside a 0 count too: NumPy cannot hold them either.
    if any(length < 0 for length in shape) or math.prod(filter(None, shape)) > limits.VALUES:
        raise Unreadable(f"its shape {shortened(str(list(shape)))} is none")
    return math.prod(shape)


def _without_values(path: Path, name: str) -> Stored:
    raise TruelineError(f"{name} has only statistics in {path}. Dump whole tensors to compare their values.")
