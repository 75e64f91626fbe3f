"""Steps of learning-rate schedulers."""

from __future__ import annotations

import math
from typing import Any

from torch import Tensor
from torch.optim import lr_scheduler

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.optimizer import OptimizerWatch
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches


class ScheduleWatch(Watch):
    """Watches `step` of every scheduler class of torch; a scheduler that steps others counts once."""

    def __init__(self, recorder: Recorder, optimizers: OptimizerWatch) -> None:
        super().__init__(recorder)
        self._optimizers = optimizers
        self._inside = False

    def install(self, patches: Patches) -> None:
        for kind in list(vars(lr_scheduler).values()):
            if isinstance(kind, type) and issubclass(kind, lr_scheduler.LRScheduler) and "step" in vars(kind):
                patches.replace(kind, "step", self._watched(vars(kind)["step"]))

    def _watched(self, original: Any) -> Any:
        def watched(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.recorder.active:
                return original(scheduler, *args, **kwargs)
            self._inside = True
            try:
                result = original(scheduler, *args, **kwargs)
            finally:
                self._inside = False
            self._stepped(scheduler, args[0] if args else kwargs.get("metrics"))
            return result

        return watched

    @guarded
    def _stepped(self, scheduler: Any, measure: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        rate = None if optimizer is None else optimizer.param_groups[0]["lr"]
        # Every scheduler steps once while it is built.
        initial = getattr(scheduler, "_step_count", 1) <= 1 and getattr(scheduler, "last_epoch", 1) <= 0
        detail = {"type": type(scheduler).__name__, "initial": initial}
        if isinstance(scheduler, lr_scheduler.ReduceLROnPlateau):
            detail |= {"mode": scheduler.mode, "measure": _number(measure)}
        self.recorder.event(
            "scheduler_step",
            subject=self._optimizers.id_of(optimizer),
            value=None if rate is None else float(rate),
            detail=detail,
            location=self.recorder.location(),
        )


def _number(measure: Any) -> float | None:
    """What a schedule was told; None for what a device would have to be waited for, and for what JSON does not know."""
    if isinstance(measure, Tensor) and (not measure.is_cpu or measure.numel() != 1):
        return None
    number = float(measure)
    return number if math.isfinite(number) else None
