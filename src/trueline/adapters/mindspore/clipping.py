"""Gradient clipping: its limit, and the norm it found."""

from __future__ import annotations

from typing import Any

from mindspore import Tensor, nn, ops

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.tensors import norm_of, tensors_in
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

_FUNCTIONS = {"clip_by_global_norm": "norm", "clip_by_norm": "norm", "clip_by_value": "value"}
_LIMITS = ("clip_norm", "max_norm", "clip_value_max")


class ClipWatch(Watch):
    """Watches the clipping functions of `ops`, on gradients of the running step."""

    def __init__(self, recorder: Recorder, optimizers: OptimizerWatch, progress: StepProgress) -> None:
        super().__init__(recorder)
        self._optimizers = optimizers
        self._progress = progress
        self._inside = False

    def install_visible(self, patches: Patches) -> None:
        for name, kind in _FUNCTIONS.items():
            patches.replace(ops, name, self._watched(kind, getattr(ops, name)))

    def cell_called(self, cell: nn.Cell, original: Any, args: Any, kwargs: Any) -> Any:
        """A cell that clips one gradient."""
        self._inside = True
        try:
            clipped = original(cell, *args, **kwargs)
        finally:
            self._inside = False
        self._clipped("norm", args, kwargs, clipped)
        return clipped

    def _watched(self, kind: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.recorder.active:
                return original(*args, **kwargs)
            self._inside = True
            try:
                clipped = original(*args, **kwargs)
            finally:
                self._inside = False
            self._clipped(kind, args, kwargs, clipped)
            return clipped

        return watched

    @guarded
    def _clipped(self, kind: str, args: Any, kwargs: Any, clipped: Any) -> None:
        given = tensors_in(args[0] if args else next(iter(kwargs.values()), ()), most=1 << 20)
        if not self._optimizers.is_fresh(given):
            # Values of the model, not gradients.
            return
        self._optimizers.note_fresh(tensors_in(clipped, most=1 << 20))
        limit = _number(next((kwargs[name] for name in _LIMITS if name in kwargs), args[-1] if len(args) > 1 else 1.0))
        norm = norm_of(given) if self.recorder.sampled and kind == "norm" else None
        detail = {"kind": kind, "limit": limit}
        self.recorder.event("clip", value=norm, detail=detail, location=self.recorder.location())
        if norm is not None and limit is not None:
            self._progress.clipped = (set(map(id, given)), min(norm, limit))


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, int | float | Tensor) else None
