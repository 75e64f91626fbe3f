"""Random numbers that a script draws while it trains: in aligned runs the same ones on both sides (adapters/pytorch/noise.py)."""

from __future__ import annotations

from typing import Any

import mindspore as ms
from mindspore import Tensor, ops
from mindspore.ops.function import random_func

from trueline.adapters.base import Watch, guarded
from trueline.record import Recorder
from trueline.record.patches import Patches

_FUNCTIONS = {
    "randn": "normal", "randn_like": "normal", "standard_normal": "normal", "rand": "uniform", "rand_like": "uniform",
}  # fmt: skip


class NoiseWatch(Watch):
    """Watches what draws normal and uniform numbers, in runs that are aligned to others or that others are aligned to."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        # These functions are made of one another.
        self._inside = False

    def install(self, patches: Patches) -> None:
        if self.recorder.alignment is None:
            return
        for name, kind in _FUNCTIONS.items():
            watched = self._watched(getattr(ops, name), kind)
            patches.replace(ops, name, watched)
            patches.replace(random_func, name, watched)
        patches.replace(ops.StandardNormal, "__call__", self._watched(ops.StandardNormal.__call__, "normal"))

    def _watched(self, original: Any, kind: str) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._inside:
                return original(*args, **kwargs)
            self._inside = True
            try:
                drawn = original(*args, **kwargs)
            finally:
                self._inside = False
            replaced = self._replaced(drawn, kind)
            return drawn if replaced is None else replaced

        return watched

    @guarded
    def _replaced(self, drawn: Any, kind: str) -> Tensor | None:
        alignment = self.recorder.alignment
        if alignment is None or not isinstance(drawn, Tensor):
            return None
        values = alignment.noise(kind, tuple(drawn.shape))
        return None if values is None else Tensor(values.astype(ms.dtype_to_nptype(drawn.dtype)), drawn.dtype)
