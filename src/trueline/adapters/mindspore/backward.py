"""Gradient functions (`value_and_grad`, `grad`, `GradOperation`): the loss they start from, and the gradients they give."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from mindspore import Parameter, Tensor, nn
from mindspore.ops.composite import base

from trueline.adapters.base import Watch, essential, guarded
from trueline.adapters.mindspore.graph import OpTrace
from trueline.adapters.mindspore.optimizer import OptimizerWatch
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import LateNumber, tensors_in
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

# A script that has built an optimizer and still has not stepped it after this many backward passes never will.
_PATIENCE = 64


class BackwardWatch(Watch):
    """Watches the two halves of every gradient function that runs operation by operation: its forward and backward pass."""

    def __init__(
        self, recorder: Recorder, registry: Registry, trace: OpTrace, progress: StepProgress, optimizers: OptimizerWatch
    ) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._trace = trace
        self._progress = progress
        self._optimizers = optimizers
        self._backwards = 0
        self._output: Any = None
        # How many gradient functions the running call is inside of.
        self.depth = 0
        self.on_over: list[Callable[[], None]] = []

    def install(self, patches: Patches) -> None:
        patches.replace(base, "_pynative_func_grad_forward", self._watched_forward(base._pynative_func_grad_forward))
        patches.replace(base, "_pynative_func_grad_backward", self._watched_backward(base._pynative_func_grad_backward))

    def _watched_forward(self, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            self.depth += 1
            try:
                output = original(*args, **kwargs)
            finally:
                self.depth -= 1
            if output is not None:
                self._output = output
            return output

        return watched

    def forward(self, call: Any, cell: nn.Cell, args: Any, kwargs: Any) -> Any:
        """Call a cell that notes for itself what its gradients need."""
        self.depth += 1
        try:
            output = self._output = call(cell, args, kwargs)
        finally:
            self.depth -= 1
        return output

    def _watched_backward(self, original: Any) -> Any:
        def watched(function: Any, operation: Any, weights: Any, *args: Any, **kwargs: Any) -> Any:
            output, self._output = self._output, None
            if not self.recorder.active:
                return original(function, operation, weights, *args, **kwargs)
            parameters = _parameters_of(function, operation, weights)
            if parameters is None or self.depth:
                # The operators of this backward pass are no part of the loss; what they give is.
                self._trace.paused += 1
                try:
                    result = original(function, operation, weights, *args, **kwargs)
                finally:
                    self._trace.paused -= 1
                self._derivative_taken(output, result)
                return result
            self._before(output)
            self._trace.end()
            self._progress.inside_backward = True
            try:
                result = original(function, operation, weights, *args, **kwargs)
            finally:
                self._progress.inside_backward = False
            for callback in self.on_over:
                callback()
            self._gradients_given(operation, parameters, result)
            self._after()
            return result

        return watched

    @guarded
    def _derivative_taken(self, output: Any, gradients: Any) -> None:
        """A derivative by inputs, or one inside of another gradient function."""
        detail: dict[str, Any] = {"create_graph": self.depth > 0}
        traced = self._trace.is_on and detail["create_graph"]
        if traced:
            for tensor in tensors_in(output, most=1):
                detail["of"] = self._trace.origin(tensor)
        seq = self.recorder.event("gradient_of_gradient", location=self.recorder.location(), detail=detail)
        if traced:
            self._trace.note_gradients(seq, tensors_in(gradients, most=64))

    @guarded
    def _before(self, output: Any) -> None:
        recorder, progress = self.recorder, self._progress
        loss = next(iter(tensors_in(output, most=1)), None)
        traced = loss is not None and self._trace.is_on
        origin = self._trace.origin(loss) if traced else None
        cut_off = self._trace.cut_off_from(loss) if loss is not None else None
        if cut_off is not None:
            # A step may have several backward passes, each from a part of the model.
            self._registry.cut_off = cut_off if not progress.backwards else cut_off & self._registry.cut_off
        self._trace.end()
        progress.loss = self._value_of(loss)
        progress.backwards += 1
        detail, known = None, None
        if recorder.sampled and loss is not None:
            detail = {
                "of": origin, "shape": list(loss.shape), "leaf": isinstance(loss, Parameter), "create_graph": False,
                "carried": [],
            }  # fmt: skip
            if traced:
                detail["function"] = origin
            known = None if progress.loss is None else float(progress.loss)
        progress.last_backward = recorder.event("backward", value=known, detail=detail, location=recorder.location())

    def _value_of(self, loss: Tensor | None) -> Any:
        if loss is None or math.prod(loss.shape) != 1:
            return None
        scaled = self._progress.unscaled
        if scaled is not None and scaled[0]() is loss:
            return scaled[1]
        return LateNumber(loss)

    @guarded
    def _gradients_given(self, operation: Any, parameters: list[Parameter], result: Any) -> None:
        gradients = result
        if getattr(operation, "get_all", False) or getattr(operation, "get_by_position", False):
            # The derivatives by inputs come first.
            gradients = result[1] if isinstance(result, tuple) and len(result) == 2 else ()
        given = [gradients] if isinstance(gradients, Tensor) else list(gradients or ())
        self._registry.note_gradients(parameters, given)
        self._optimizers.note_fresh(given)

    @essential
    def _after(self) -> None:
        if self._progress.optimizer_has_stepped:
            return
        self._backwards += 1
        if not self._optimizers.any_built or self._backwards > _PATIENCE:
            # Without an optimizer that steps, each backward pass is a step.
            self._end_step()

    @essential
    def finish(self) -> None:
        """The script has run to its end and no optimizer ever stepped: what was seen since the last step counts as one."""
        self._optimizers.settle()
        if self._progress.backwards and not self._progress.optimizer_has_stepped:
            self._end_step()

    def _end_step(self) -> None:
        if self.recorder.sampled:
            self._registry.sample_gradients()
        self._registry.forget_gradients()
        self._progress.end()


def _parameters_of(function: Any, operation: Any, weights: Any) -> list[Parameter] | None:
    """The parameters that are derived by; None for a derivative by inputs only."""
    if weights is None:
        by_list = bool(getattr(operation, "get_by_list", False))
        return list(function.trainable_params()) if by_list and isinstance(function, nn.Cell) else None
    return [weights] if isinstance(weights, Parameter) else list(weights)
