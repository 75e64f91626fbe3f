"""Schedules of the learning rate: those that the script steps, and lists and cells that the optimizer goes through by itself."""

from __future__ import annotations

from collections import deque
from typing import Any

import numpy as np
from mindspore import Tensor, nn
from mindspore.experimental.optim import lr_scheduler
from mindspore.nn import dynamic_lr

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.rates import number_of
from trueline.adapters.mindspore.registry import Registry
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

_LISTS = (
    "cosine_decay_lr", "exponential_decay_lr", "inverse_decay_lr", "natural_exp_decay_lr", "piecewise_constant_lr",
    "polynomial_decay_lr", "warmup_lr",
)  # fmt: skip
# Lists whose line is remembered until an optimizer is given one of them.
_REMEMBERED = 16


class ScheduleWatch(Watch):
    """Watches `step` of the schedulers of `experimental.optim`, the functions of `nn` that make lists of rates, and what
    optimizers are given as their rate."""

    def __init__(self, recorder: Recorder, registry: Registry, optimizers: OptimizerWatch) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._optimizers = optimizers
        self._inside = False
        self._lists: deque[tuple[Any, str, int | None]] = deque(maxlen=_REMEMBERED)
        optimizers.on_built.append(self._optimizer_built)

    def install(self, patches: Patches) -> None:
        for kind in list(vars(lr_scheduler).values()):
            if isinstance(kind, type) and "step" in vars(kind):
                patches.replace(kind, "step", self._watched_step(vars(kind)["step"]))
        for name in _LISTS:
            for owner in (nn, dynamic_lr):
                if hasattr(owner, name):
                    patches.replace(owner, name, self._watched_list(name, getattr(dynamic_lr, name)))

    def _watched_step(self, original: Any) -> Any:
        def watched(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._inside or not self.recorder.active:
                return original(scheduler, *args, **kwargs)
            self._inside = True
            try:
                result = original(scheduler, *args, **kwargs)
            finally:
                self._inside = False
            self._stepped(scheduler)
            return result

        return watched

    @guarded
    def _stepped(self, scheduler: Any) -> None:
        optimizer = getattr(scheduler, "optimizer", None)
        rate = None if optimizer is None else number_of(optimizer.param_groups[0]["lr"])
        last = number_of(getattr(scheduler, "last_epoch", 1))
        detail = {"type": type(scheduler).__name__, "initial": last is not None and last <= 0}
        self.recorder.event(
            "scheduler_step",
            subject=self._optimizers.id_of(optimizer),
            value=rate,
            detail=detail,
            location=self.recorder.location(),
        )

    def _watched_list(self, name: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            rates = original(*args, **kwargs)
            if self.recorder.active:
                self._list_made(rates, name)
            return rates

        return watched

    @guarded
    def _list_made(self, rates: Any, name: str) -> None:
        self._lists.append((rates, name, self.recorder.location()))

    @guarded
    def _optimizer_built(self, number: int, rates: list[Any]) -> None:
        """An optimizer was given these as its learning rates. What is counted in steps is told once, with the line it is from."""
        for rate in rates:
            kind, location = self._kind_of(rate)
            if kind is not None:
                self.recorder.event(
                    "scheduler_step",
                    subject=number,
                    detail={"type": kind, "initial": True, "by_optimizer": True},
                    location=self.recorder.location() if location is None else location,
                )
                return

    def _kind_of(self, rate: Any) -> tuple[str | None, int | None]:
        if isinstance(rate, nn.Cell):
            return type(rate).__name__, self._registry.built.get(rate)
        known = next(((name, line) for made, name, line in self._lists if made is rate), None)
        if known is not None:
            return known
        several = isinstance(rate, list | tuple | np.ndarray) or (isinstance(rate, Tensor) and len(rate.shape) == 1)
        return ("list of learning rates", None) if several else (None, None)
