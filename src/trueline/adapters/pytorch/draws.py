"""The batches that a script draws from whole tensors by itself: which tensors were drawn with the same rows.

Watched only in runs that are aligned to others, where the targets that belong to a model's inputs have to be known although no
loader gave them and no loss function of the framework takes them.
"""

from __future__ import annotations

import weakref
from collections import deque
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.tensors import array_of, is_plain, replace
from trueline.recorder import Recorder
from trueline.recorder.alignment import Alignment
from trueline.recorder.patches import Patches

# Draws of one batch, with all that a script may look up beside them.
_REMEMBERED = 64
_MADE = ("made",)

Key = tuple[Any, ...]


class DrawWatch(Watch):
    """Remembers rows taken out of tensors, and tensors made of arrays."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self._drawn: deque[tuple[weakref.ref[Tensor], Key]] = deque(maxlen=_REMEMBERED)
        self._batch: tuple[Alignment, set[Key], int] | None = None
        self._step = -1
        self._looks: set[Key] = set()
        self._filled: list[weakref.ref[Tensor]] = []

    def install(self, patches: Patches) -> None:
        if self.recorder.alignment is None:
            return
        patches.replace(Tensor, "__getitem__", self._watched(Tensor.__getitem__))
        patches.replace(Tensor, "index_select", self._watched(Tensor.index_select))
        for name in ("from_numpy", "tensor", "as_tensor", "stack"):
            patches.replace(torch, name, self._watched_making(getattr(torch, name)))

    def _watched(self, original: Any) -> Any:
        def watched(tensor: Any, *args: Any, **kwargs: Any) -> Any:
            rows = original(tensor, *args, **kwargs)
            if not self.recorder.busy and isinstance(rows, Tensor) and rows.dim() and not tensor.requires_grad:
                self._was_drawn(tensor, args[-1] if args else kwargs.get("index"), rows)
            return rows

        return watched

    def _watched_making(self, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            made = original(*args, **kwargs)
            if not self.recorder.busy and isinstance(made, Tensor) and made.dim() and not made.requires_grad:
                self._note(made, _MADE)
            return made

        return watched

    @guarded
    def _was_drawn(self, tensor: Tensor, index: Any, rows: Tensor) -> None:
        first = index[0] if isinstance(index, tuple) and index else index
        if rows.shape[0] >= tensor.shape[0] or not isinstance(first, slice | Tensor | list | np.ndarray):
            return
        if isinstance(first, Tensor):
            # Numbers of rows are no data, whatever they look like.
            self._drawn = deque(((held, key) for held, key in self._drawn if held() is not first), maxlen=_REMEMBERED)
        self._note(rows, _key(first))

    @guarded
    def _note(self, tensor: Tensor, key: Key) -> None:
        if not is_plain(tensor):
            return
        self._drawn.append((weakref.ref(tensor), key))
        # What is drawn after the update is for the next batch, and so is what looks as the inputs do that went in already.
        if key == _MADE and _look(tensor) in self._looks:
            self._batch = None
        if self._batch is not None and self._step == self.recorder.step:
            alignment, keys, size = self._batch
            if key in keys and tensor.shape[0] == size:
                self._fill(alignment, tensor)

    def is_filled(self, tensors: list[Tensor]) -> bool:
        """Whether these tensors are known to belong to the batch of this step already."""
        known = {id(tensor) for held in self._filled if (tensor := held()) is not None}
        return bool(tensors) and all(id(tensor) in known for tensor in tensors)

    @guarded
    def entered(self, alignment: Alignment, inputs: list[Tensor]) -> None:
        """The inputs of a batch have gone into the model: what was drawn with the same rows belongs to it, or will do so."""
        size = inputs[0].shape[0]
        given = {id(tensor) for tensor in inputs}
        drawn = [(tensor, key) for held, key in self._drawn if (tensor := held()) is not None and tensor.shape[0] == size]
        # Inputs that were changed after they were drawn are not known; then it is the last draw of as many rows.
        keys = {key for tensor, key in drawn if id(tensor) in given} or {key for _, key in drawn[-1:]}
        self._filled = [weakref.ref(tensor) for tensor in inputs]
        for tensor, key in drawn:
            if key in keys and id(tensor) not in given:
                self._fill(alignment, tensor)
        self._drawn.clear()
        self._batch = (alignment, keys, size)
        self._step = self.recorder.step
        self._looks = {_look(tensor) for tensor in inputs}

    def _fill(self, alignment: Alignment, tensor: Tensor) -> None:
        values = alignment.beside(array_of(tensor))
        if values is not None:
            replace(tensor, values)
        self._filled.append(weakref.ref(tensor))


def _look(tensor: Tensor) -> Key:
    return (*tensor.shape, tensor.dtype)


def _key(index: slice | Tensor | list[Any] | NDArray[Any]) -> Key:
    """Which rows were drawn: the same for indices that are made anew for every tensor."""
    if isinstance(index, slice):
        return ("slice", index.start, index.stop, index.step)
    return ("rows", (array_of(index) if isinstance(index, Tensor) else np.asarray(index)).tobytes())
