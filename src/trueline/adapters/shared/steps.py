"""What is gathered between the end of one step and the end of the next."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from trueline.adapters.base import Watch, essential
from trueline.recorder import Recorder


class StepProgress(Watch):
    """The running step, as far as it has come. Ends it when a backward pass or an optimizer says so.

    `clipped`: the tensors whose gradients were clipped in this step, and their norm after it. `unscaled`: the loss that a
    gradient scaler scaled, and its value before that.
    """

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(recorder)
        self.loss: Any = None
        self.backwards = 0
        self.last_backward = 0
        self.clipped: tuple[set[int], float] | None = None
        self.unscaled: tuple[weakref.ref[Any], Any] | None = None
        self.inside_optimizer = False
        self.inside_backward = False
        self.optimizer_has_stepped = False
        self.on_first_end: list[Callable[[], None]] = []

    @essential
    def end(
        self,
        *,
        optimizer: int | None = None,
        grad_norm: Any = None,
        cleared: bool | None = None,
        with_gradient: int | None = None,
        without_gradient: int | None = None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        """The step is over: by a step of this optimizer, or (None) by a backward pass that no optimizer follows."""
        recorder = self.recorder
        if recorder.step == 0:
            for callback in self.on_first_end:
                callback()
        seq = self.last_backward
        if optimizer is not None:
            self.optimizer_has_stepped = True
            seq = recorder.event("optimizer_step", subject=optimizer, detail=detail, location=recorder.location())
        loss, backwards = self.loss, self.backwards
        self.loss, self.backwards, self.clipped, self.unscaled = None, 0, None, None
        recorder.end_step(
            seq=seq,
            optimizer=optimizer,
            loss=loss,
            grad_norm=grad_norm,
            backwards=backwards,
            cleared=cleared,
            with_gradient=with_gradient,
            without_gradient=without_gradient,
        )
