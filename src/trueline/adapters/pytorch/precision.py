"""Gradient scaling: the order of scale, backward, unscale, clip and step, and the scale itself."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor
from torch.amp.grad_scaler import GradScaler

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.optimizer import OptimizerWatch
from trueline.adapters.pytorch.tensors import number
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches


class ScalerWatch(Watch):
    """Watches `torch.amp.GradScaler`. A disabled scaler does nothing, and nothing is recorded of it."""

    def __init__(self, recorder: Recorder, optimizers: OptimizerWatch, progress: StepProgress) -> None:
        super().__init__(recorder)
        self._optimizers = optimizers
        self._progress = progress
        self._stepping = False

    def install(self, patches: Patches) -> None:
        patches.replace(GradScaler, "scale", self._watched_scale())
        patches.replace(GradScaler, "unscale_", self._watched_unscale())
        patches.replace(GradScaler, "step", self._watched_step())
        patches.replace(GradScaler, "update", self._watched_update())

    def _watched_scale(self) -> Any:
        original: Any = GradScaler.scale

        def watched(scaler: Any, outputs: Any) -> Any:
            scaled = original(scaler, outputs)
            if scaler.is_enabled():
                self._scaled(scaler, outputs, scaled)
            return scaled

        return watched

    @guarded
    def _scaled(self, scaler: Any, outputs: Any, scaled: Any) -> None:
        self.recorder.event("scale", value=_scale_of(scaler), location=self.recorder.location())
        if isinstance(outputs, Tensor) and outputs.numel() == 1:
            with torch.no_grad():
                self._progress.unscaled = (weakref.ref(scaled), number(outputs))

    def _watched_unscale(self) -> Any:
        original: Any = GradScaler.unscale_

        def watched(scaler: Any, optimizer: Any) -> Any:
            result = original(scaler, optimizer)
            if scaler.is_enabled() and not self._stepping:
                self._happened("unscale", scaler, optimizer)
            return result

        return watched

    def _watched_step(self) -> Any:
        original: Any = GradScaler.step

        def watched(scaler: Any, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if not scaler.is_enabled() or not self.recorder.active:
                return original(scaler, optimizer, *args, **kwargs)
            self._happened("scaler_step", scaler, optimizer)
            step = self.recorder.step
            self._stepping = True
            try:
                result = original(scaler, optimizer, *args, **kwargs)
            finally:
                self._stepping = False
            if self.recorder.step == step:
                self._skipped(optimizer)
            return result

        return watched

    @guarded
    def _skipped(self, optimizer: Any) -> None:
        self._optimizers.skipped(getattr(optimizer, "optimizer", optimizer))

    def _watched_update(self) -> Any:
        original: Any = GradScaler.update

        def watched(scaler: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(scaler, *args, **kwargs)
            if scaler.is_enabled():
                self._happened("scaler_update", scaler, None)
            return result

        return watched

    @guarded
    def _happened(self, kind: str, scaler: Any, optimizer: Any) -> None:
        subject = self._optimizers.id_of(optimizer)
        self.recorder.event(kind, subject=subject, value=_scale_of(scaler), location=self.recorder.location())


def _scale_of(scaler: Any) -> float | None:
    """The scale, when reading it does not make the device wait."""
    scale = scaler._scale
    if scale is None:
        return float(scaler._init_scale)
    return float(scale) if scale.device.type == "cpu" else None
