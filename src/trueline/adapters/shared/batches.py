"""What is said of batches among the watches of an adapter, and reading their targets."""

from __future__ import annotations

import math
import weakref
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.adapters.base import Watch
from trueline.recorder import Recorder

# Positions in the rows of the table `batch`.
SEQ, STEP, LOADER, SIZE, TARGETS, TARGET_KIND = 0, 1, 2, 6, 8, 9
TARGET_NAMES = {"label", "labels", "label_ids", "target", "targets", "y"}


class Current(NamedTuple):
    """The batch that the model was fed with last; `classes` are its labels as they are stored, when they are classes."""

    seq: int
    size: int
    classes: bytes | None


class Handed:
    """The tensors that a root module was called with last, without keeping them alive: others may get their addresses."""

    def __init__(self, seq: int, step: int, root: int, tensors: list[Any]) -> None:
        self.seq = seq
        self._step = step
        self._root = root
        self._tensors = [weakref.ref(tensor) for tensor in tensors]

    def is_same(self, step: int, root: int, tensors: list[Any]) -> bool:
        if (step, root, len(tensors)) != (self._step, self._root, len(self._tensors)):
            return False
        return all(reference() is tensor for reference, tensor in zip(self._tensors, tensors, strict=True))


class CurrentBatch(Watch):
    """The row of the batch that the model was fed with last."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._current: list[Any] | None = None

        # Loaders whose batches were seen to go into a model that trains, and into one that is evaluated.
        self._training_loaders: set[int] = set()
        self._evaluation_loaders: set[int] = set()
        self._aligned: tuple[int, int | None] | None = None

    def _trains_with(self, loader: int) -> bool:
        """Whether a loader is the one that the training is fed from; the first one is, until it is seen otherwise."""
        if loader in self._training_loaders:
            return True
        return loader not in self._evaluation_loaders and not self._training_loaders

    def went_in(self, batch: int | None, *, training: bool) -> None:
        """A batch has been fed to a model. Matters only for runs that are aligned to others."""
        if self._aligned is None or self._aligned[0] != batch:
            return
        loader = self._aligned[1]
        if training:
            self._training_loaders.add(-1 if loader is None else loader)
        elif loader is not None and loader not in self._training_loaders:
            self._evaluation_loaders.add(loader)
            if self.recorder.alignment is not None:
                self.recorder.alignment.took_back()
        self._aligned = None

    @property
    def current(self) -> Current | None:
        row = self._current
        if row is None:
            return None
        return Current(row[SEQ], row[SIZE], row[TARGETS] if row[TARGET_KIND] == "class" else None)

    @property
    def lacks_targets(self) -> bool:
        """Whether the current batch has not been seen together with its targets."""
        return self._current is not None and self._current[TARGETS] is None


def target_field(fields: list[tuple[str, tuple[int, ...]]]) -> str | None:
    """The field that holds the targets, of names and shapes: by its name, or the last of several when it has one value per
    sample."""
    for name, _ in fields:
        if name.rpartition(".")[2].lower() in TARGET_NAMES:
            return name
    if len(fields) < 2:
        return None
    name, shape = fields[-1]
    return name if math.prod(shape) == shape[0] or len(shape) < len(fields[0][1]) else None


def targets_of(values: NDArray[Any]) -> tuple[bytes | None, str | None]:
    """One number per sample as it is stored, and its kind, when the targets are that simple."""
    if values.size != values.shape[0] or values.size == 0 or values.dtype.kind not in "iubf":
        return None, None
    kind = "class"
    if values.dtype.kind == "f" and not np.isin(values, (0.0, 1.0)).all():
        kind = "value"
    return values.astype("<f8").tobytes(), kind
