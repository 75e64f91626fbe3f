"""What the readers of all formats hand out: chunks of rows with typed columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from trueline.datasets import hashing
from trueline.datasets.hashing import Hashes

_PADDING = b"\0" * 8


@dataclass(frozen=True)
class Numbers:
    """Numbers of a chunk, one per row, or a block of them per row (`values` of two axes).

    NaN stands for a value that is absent too: `null`, `empty`, `blank` and `words` say how many are. `words` counts the texts
    that stand where a number should. `identity` has one hash per row; that of an absent value is `hashing.NOTHING`.
    Of kind `ragged` are rows of different lengths: `values` are those of all rows, `missing_rows` have none.
    """

    values: npt.NDArray[Any]
    identity: Hashes
    null: int = 0
    empty: int = 0
    blank: int = 0
    words: dict[str, int] = field(default_factory=dict)
    missing_rows: int = 0
    kind: str = "number"

    def __len__(self) -> int:
        return len(self.identity)

    @property
    def absent(self) -> int:
        return self.null + self.empty + self.blank + sum(self.words.values())


@dataclass(frozen=True)
class Texts:
    """Texts or bytes of a chunk, one after the other in `data` (with padding at its end); `null` says which are absent."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    null: npt.NDArray[np.bool_]
    kind: str = "text"

    @classmethod
    def of(cls, values: Iterable[str | bytes | None], kind: str = "text") -> Texts:
        encoded = [value.encode(errors="surrogatepass") if isinstance(value, str) else value for value in values]
        lengths = [0, *(len(value or b"") for value in encoded)]
        data = np.frombuffer(b"".join(value or b"" for value in encoded) + _PADDING, np.uint8)
        return cls(np.cumsum(lengths, dtype=np.int64), data, np.array([value is None for value in encoded], bool), kind)

    def __len__(self) -> int:
        return len(self.null)

    def __getitem__(self, place: int) -> str:
        return bytes(self.data[self.offsets[place] : self.offsets[place + 1]]).decode(errors="replace")

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        return self.offsets[1:] - self.offsets[:-1]

    @cached_property
    def identity(self) -> Hashes:
        hashes = hashing.of_texts(self.offsets, self.data)
        if self.null.any():
            hashes[self.null] = hashing.NOTHING
        return hashes


Column = Numbers | Texts


@dataclass(frozen=True)
class Chunk:
    """Some rows of a table. `done` is the share of the table that has been read with them, where it is known."""

    columns: dict[str, Column]
    rows: int
    done: float | None = None


def numbers_of(values: Sequence[Any] | npt.NDArray[Any]) -> Numbers:
    """One number per row; None is null."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return Numbers(values, hashing.of_numbers(values))
    absent = np.array([value is None for value in values], bool)
    floats = np.array([np.nan if value is None else value for value in values], np.float64)
    identity = hashing.of_numbers(floats)
    identity[absent] = hashing.NOTHING
    return Numbers(floats, identity, null=int(absent.sum()))


def block_of(block: npt.NDArray[Any]) -> Numbers:
    """A block of numbers per row: an image, a series, an embedding."""
    return Numbers(block.reshape(len(block), -1), hashing.of_rows(block), kind="array")
