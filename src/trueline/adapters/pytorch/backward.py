"""Backward passes: the loss they start from, and what was left in the gradients before them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueline.adapters.base import Watch, essential, guarded
from trueline.adapters.pytorch.graph import OpTrace
from trueline.adapters.pytorch.optimizer import OptimizerWatch
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.tensors import number, tensors_in, under_transform
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches

# A script that has built an optimizer and still has not stepped it after this many backward passes never will.
_PATIENCE = 64
# The arguments of `torch.autograd.grad` by their position.
_GRAD_ARGUMENTS = ("outputs", "inputs", "grad_outputs", "retain_graph", "create_graph")


class BackwardWatch(Watch):
    """Watches `torch.autograd.backward`, which `Tensor.backward` calls, and `torch.autograd.grad`."""

    def __init__(
        self, recorder: Recorder, registry: Registry, trace: OpTrace, progress: StepProgress, optimizers: OptimizerWatch
    ) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._trace = trace
        self._progress = progress
        self._optimizers = optimizers
        self._backwards = 0
        self._inside_grad = False

    def install(self, patches: Patches) -> None:
        patches.replace(torch.autograd, "backward", self._watched_backward())
        patches.replace(torch.autograd, "grad", self._watched_grad())

    def _watched_backward(self) -> Any:
        original: Any = torch.autograd.backward

        def watched(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if under_transform() or not self.recorder.active:
                original(tensors, *args, **kwargs)
                return
            self._before(tensors, kwargs)
            self._trace.end()
            self._progress.inside_backward = True
            try:
                original(tensors, *args, **kwargs)
            finally:
                self._progress.inside_backward = False
            if not self._progress.optimizer_has_stepped:
                self._after()

        return watched

    @guarded
    def _before(self, tensors: Any, kwargs: Any) -> None:
        recorder, progress = self.recorder, self._progress
        loss = tensors if isinstance(tensors, Tensor) else next((part for part in tensors if isinstance(part, Tensor)), None)
        origin = self._trace.origin(loss) if loss is not None and self._trace.is_on else None
        self._trace.end()
        carried = (self._optimizers.leftovers() or []) if progress.backwards == 0 else []
        progress.loss = self._value_of(loss)
        progress.backwards += 1
        detail = None
        if recorder.sampled and loss is not None:
            detail = {
                "of": origin,
                "shape": list(loss.shape),
                "leaf": loss.is_leaf,
                "create_graph": bool(kwargs.get("create_graph")),
                "function": loss.grad_fn.name() if loss.grad_fn is not None else None,
                "carried": carried,
            }
        known = progress.loss if isinstance(progress.loss, float) else None
        progress.last_backward = recorder.event("backward", value=known, detail=detail, location=recorder.location())

    def _value_of(self, loss: Tensor | None) -> Any:
        if loss is None or loss.numel() != 1:
            return None
        scaled = self._progress.unscaled
        if scaled is not None and scaled[0]() is loss:
            return scaled[1]
        return number(loss)

    @essential
    def finish(self) -> None:
        """The script has run to its end and no optimizer ever stepped: what was seen since the last step counts as one."""
        if self._progress.backwards and not self._progress.optimizer_has_stepped:
            self._end_step()

    def _end_step(self) -> None:
        if self.recorder.sampled:
            with torch.no_grad():
                self._registry.sample_gradients()
        self._progress.end()

    @essential
    def _after(self) -> None:
        """Without an optimizer that steps, each backward pass is a step."""
        progress = self._progress
        if progress.inside_optimizer:
            return
        self._backwards += 1
        if self._optimizers.any_built and self._backwards <= _PATIENCE:
            return
        self._end_step()

    def _watched_grad(self) -> Any:
        original: Any = torch.autograd.grad

        def watched(*args: Any, **kwargs: Any) -> Any:
            if under_transform() or self._inside_grad:
                return original(*args, **kwargs)
            self._inside_grad = True
            try:
                result = original(*args, **kwargs)
            finally:
                self._inside_grad = False
            self._gradient_taken(args, kwargs, result)
            return result

        return watched

    @guarded
    def _gradient_taken(self, args: Any, kwargs: Any, gradients: Any) -> None:
        given = {**dict(zip(_GRAD_ARGUMENTS, args, strict=False)), **kwargs}
        detail: dict[str, Any] = {"create_graph": bool(given.get("create_graph"))}
        traced = self._trace.is_on and detail["create_graph"]
        if traced:
            for key, argument in (("of", "outputs"), ("weighted_by", "grad_outputs")):
                for tensor in tensors_in(given.get(argument), most=1):
                    detail[key] = self._trace.origin(tensor)
        seq = self.recorder.event("gradient_of_gradient", location=self.recorder.location(), detail=detail)
        if traced:
            self._trace.note_gradients(seq, tensors_in(gradients, most=64))
