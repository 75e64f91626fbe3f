"""Loss scaling: the order of scale, gradients, unscale, clip and step, and the scale itself."""

from __future__ import annotations

import math
import weakref
from typing import Any

from mindspore import Tensor, amp, nn

from trueline.adapters.base import Watch, guarded
from trueline.adapters.mindspore.graph import OpTrace
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.tensors import LateNumber, array_of, tensors_in
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.identity import ByIdentity
from trueline.recorder.patches import Patches


class ScalerWatch(Watch):
    """Watches `amp.DynamicLossScaler` and `amp.StaticLossScaler` where the script calls them itself; told of calls of
    `nn.TrainOneStepWithLossScaleCell`, which scales, unscales and leaves out steps on its own."""

    def __init__(self, recorder: Recorder, optimizers: OptimizerWatch, trace: OpTrace, progress: StepProgress) -> None:
        super().__init__(recorder)
        self._trace = trace
        self._optimizers = optimizers
        self._progress = progress
        self._step_of_unscale = -1
        self._built: ByIdentity = ByIdentity()

    def install_visible(self, patches: Patches) -> None:
        for scaler in (amp.DynamicLossScaler, amp.StaticLossScaler):
            patches.replace(scaler, "__init__", self._watched_construction(scaler.__init__))
            patches.replace(scaler, "scale", self._watched(scaler.scale, self._scaled))
            patches.replace(scaler, "unscale", self._watched(scaler.unscale, self._unscaled))
            patches.replace(scaler, "adjust", self._watched(scaler.adjust, self._adjusted))
        patches.replace(amp, "all_finite", self._watched_question(amp.all_finite))

    def around(self, call: Any, cell: nn.Cell, args: Any, kwargs: Any) -> Any:
        """A step with a scale of its own: `call` it between the events of the scale."""
        if not isinstance(cell, nn.TrainOneStepWithLossScaleCell):
            self._fixed_scale(cell)
            return call(cell, args, kwargs)
        step = self.recorder.step
        self._step_begins(cell)
        result = call(cell, args, kwargs)
        self._step_ended(cell, step)
        return result

    @guarded
    def _fixed_scale(self, cell: nn.Cell) -> None:
        """`TrainOneStepCell` multiplies gradients by `sens`, and leaves it to its optimizer to divide them by `loss_scale`."""
        scale = cell.sens
        if not isinstance(scale, int | float) or scale == 1:
            return
        taken_out = float(getattr(cell.optimizer, "loss_scale", 1.0))
        where = self.recorder.location()
        self.recorder.event("scale", value=float(scale), detail={"taken_out": taken_out}, location=where)
        if taken_out == scale:
            self.recorder.event("unscale", value=float(scale), location=where)

    @guarded
    def used(self, scaler: Any) -> None:
        """A compiled step refers to this scaler. When it scales and unscales is not seen."""
        where = self._built.get(scaler)
        where = self.recorder.location() if where is None else where
        self.recorder.event("scale", value=scale_of(scaler), detail={"compiled": True}, location=where)

    @guarded
    def updated(self, scaler: Any) -> None:
        if isinstance(scaler, amp.DynamicLossScaler):
            self.recorder.event("scaler_update", value=scale_of(scaler), location=self.recorder.location())

    @guarded
    def _step_begins(self, cell: nn.Cell) -> None:
        self.recorder.event("scale", value=scale_of(cell), location=self.recorder.location())

    @guarded
    def _step_ended(self, cell: nn.Cell, step: int) -> None:
        if self.recorder.step == step and self._progress.backwards:
            self._optimizers.skipped(cell.optimizer)
        self.recorder.event("scaler_update", value=scale_of(cell), location=self.recorder.location())

    def _watched_construction(self, original: Any) -> Any:
        def __init__(scaler: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(scaler, *args, **kwargs)
            if self.recorder.active:
                self._scaler_built(scaler)

        return __init__

    @guarded
    def _scaler_built(self, scaler: Any) -> None:
        self._built[scaler] = self.recorder.location()

    def _watched_question(self, original: Any) -> Any:
        def all_finite(*args: Any, **kwargs: Any) -> Any:
            finite = original(*args, **kwargs)
            if self.recorder.active and not self.recorder.busy:
                self._optimizers.note_finite(finite)
            return finite

        return all_finite

    def _watched(self, original: Any, told: Any) -> Any:
        def watched(scaler: Any, given: Any) -> Any:
            result = original(scaler, given)
            if self.recorder.active:
                told(scaler, given, result)
            return result

        return watched

    @guarded
    def _scaled(self, scaler: Any, given: Any, result: Any) -> None:
        losses, scaled = tensors_in(given, most=1), tensors_in(result, most=1)
        detail = None
        if losses and scaled and self._trace.is_on:
            # The product is made out of sight of the trace.
            self._trace.add("mul", losses, scaled, {"args": [scale_of(scaler)]})
            detail = {"product": self._trace.origin(scaled[0], use=False)}
        self.recorder.event("scale", value=scale_of(scaler), detail=detail, location=self.recorder.location())
        if losses and scaled and math.prod(losses[0].shape) == 1:
            self._progress.unscaled = (weakref.ref(scaled[0]), LateNumber(losses[0]))

    @guarded
    def _unscaled(self, scaler: Any, given: Any, result: Any) -> None:
        gradients = tensors_in(given, most=1 << 20)
        if not self._optimizers.is_fresh(gradients):
            return
        self._optimizers.note_fresh(tensors_in(result, most=1 << 20))
        self._step_of_unscale = self.recorder.step
        self.recorder.event("unscale", value=scale_of(scaler), location=self.recorder.location())

    @guarded
    def _adjusted(self, scaler: Any, given: Any, result: Any) -> None:
        optimizers = self._optimizers.alive()
        if self.recorder.step == self._step_of_unscale and self._progress.backwards and len(optimizers) == 1:
            # Gradients were unscaled and no optimizer has stepped: they were not finite.
            self._optimizers.skipped(optimizers[0])
        self.recorder.event("scaler_update", value=scale_of(scaler), location=self.recorder.location())


def scale_of(scaler: Any) -> float | None:
    """The scale that a scaler has now."""
    scale = getattr(scaler, "scale_value", None)
    if scale is None:
        scale = getattr(scaler, "scale_sense", None)
    if isinstance(scale, Tensor):
        return float(array_of(scale).reshape(-1)[0])
    return float(scale) if isinstance(scale, int | float) else None
