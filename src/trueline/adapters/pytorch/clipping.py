"""Gradient clipping: its limit, and the norm it found."""

from __future__ import annotations

from typing import Any

from torch import Tensor, nn

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.tensors import number
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches


class ClipWatch(Watch):
    """Watches `clip_grad_norm_` and `clip_grad_value_`."""

    def __init__(self, recorder: Recorder, progress: StepProgress) -> None:
        super().__init__(recorder)
        self._progress = progress

    def install(self, patches: Patches) -> None:
        for kind in ("norm", "value"):
            name = f"clip_grad_{kind}_"
            clip = self._watched(kind, getattr(nn.utils, name))
            patches.replace(nn.utils, name, clip)
            patches.replace(nn.utils.clip_grad, name, clip)

    def _watched(self, kind: str, original: Any) -> Any:
        def watched(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.recorder.active:
                return original(parameters, *args, **kwargs)
            tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            norm = original(tensors, *args, **kwargs)
            limit = args[0] if args else next((kwargs[name] for name in ("max_norm", "clip_value") if name in kwargs), None)
            self._clipped(kind, limit, tensors, norm)
            return norm

        return watched

    @guarded
    def _clipped(self, kind: str, limit: Any, tensors: list[Tensor], norm: Any) -> None:
        value = number(norm) if isinstance(norm, Tensor) else None
        known = value if isinstance(value, float) else None
        detail = {"kind": kind, "limit": float(limit) if limit is not None else None}
        self.recorder.event("clip", value=known, detail=detail, location=self.recorder.location())
        if kind == "norm" and known is not None and limit is not None:
            self._progress.clipped = ({id(tensor) for tensor in tensors}, min(known, float(limit)))
