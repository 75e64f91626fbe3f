"""Backward passes, clearing, clipping, optimizer and scheduler steps: where steps begin and end."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer, lr_scheduler
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook
from torch.utils.weak import WeakIdKeyDictionary

from trueline.adapters.base import Watch, guarded
from trueline.adapters.pytorch.graph import OpTrace
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.tensors import dtype_name, is_plain, number
from trueline.record import Recorder, to_json
from trueline.record.patches import Patches

# Until this step, and on every sampled one after it, leftover gradients are measured before a backward pass adds to them.
_MEASURED_STEPS = 20
# A script that has built an optimizer and still has not stepped it after this many backward passes never will.
_PATIENCE = 64


class _OptimizerState:
    """What is known of one optimizer."""

    def __init__(self, optimizer: Optimizer, identity: int) -> None:
        self.id = identity
        self.reference = weakref.ref(optimizer)
        self.cleared: bool | None = None
        self.steps = 0
        self.hyperparameters: dict[tuple[int, str], Any] = {}
        self.parameters: list[list[Any]] = []
        self.tensors: list[weakref.ref[Tensor]] = []


class OptimizerWatch(Watch):
    """Watches optimizers, `backward`, clipping and schedulers, and tells the recorder when a step ends."""

    def __init__(self, recorder: Recorder, registry: Registry, trace: OpTrace) -> None:
        super().__init__(recorder)
        self._registry = registry
        self._trace = trace
        self._states: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._built: WeakIdKeyDictionary = WeakIdKeyDictionary()
        self._optimizers = 0
        self._ever_stepped = False
        self._backwards = 0
        self._backwards_without_step = 0
        self._loss: Any = None
        self._pending: dict[str, Any] | None = None
        self._stepping = False
        self._scheduling = False
        self._clipped: tuple[set[int], float] | None = None
        self._handles: list[Any] = []
        self._last_backward = 0
        self.on_first_step: list[Callable[[], None]] = []
        self.unscaled: tuple[weakref.ref[Tensor], Any] | None = None
        registry.on_new_parameters.append(self._resolve_parameters)

    def install(self, patches: Patches) -> None:
        self._handles = [register_optimizer_step_pre_hook(self._before_step), register_optimizer_step_post_hook(self._after_step)]
        patches.replace(Optimizer, "__init__", self._watched_construction())
        patches.replace(Optimizer, "zero_grad", self._watched_zero_grad(Optimizer.zero_grad))
        patches.replace(nn.Module, "zero_grad", self._watched_zero_grad(nn.Module.zero_grad))
        patches.replace(torch.autograd, "backward", self._watched_backward())
        patches.replace(torch.autograd, "grad", self._watched_grad())
        for kind in ("norm", "value"):
            clip = self._watched_clip(kind, getattr(nn.utils, f"clip_grad_{kind}_"))
            patches.replace(nn.utils, f"clip_grad_{kind}_", clip)
            patches.replace(nn.utils.clip_grad, f"clip_grad_{kind}_", clip)
        for scheduler in vars(lr_scheduler).values():
            if isinstance(scheduler, type) and issubclass(scheduler, lr_scheduler.LRScheduler) and "step" in vars(scheduler):
                patches.replace(scheduler, "step", self._watched_schedule(vars(scheduler)["step"]))

    def uninstall(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    def state_of(self, optimizer: Optimizer) -> _OptimizerState:
        state = self._states.get(optimizer)
        if state is None:
            self._optimizers += 1
            state = self._states[optimizer] = _OptimizerState(optimizer, self._optimizers)
            self.recorder.row("optimizer", (state.id, type(optimizer).__name__, self._built.get(optimizer)))
        return state  # type: ignore[no-any-return]

    def _watched_construction(self) -> Any:
        original: Any = Optimizer.__init__
        watch = self

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(optimizer, *args, **kwargs)
            if watch.recorder.active:
                watch._optimizer_built(optimizer)

        return __init__

    @guarded
    def _optimizer_built(self, optimizer: Optimizer) -> None:
        self._built[optimizer] = self.recorder.location()
        self.state_of(optimizer)

    # Clearing

    def _watched_zero_grad(self, original: Any) -> Any:
        def watched(owner: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(owner, *args, **kwargs)
            self._cleared(owner)
            return result

        return watched

    @guarded
    def _cleared(self, owner: Any) -> None:
        subject = None
        if isinstance(owner, Optimizer):
            state = self.state_of(owner)
            state.cleared = True
            subject = state.id
        self.recorder.event("zero_grad", subject=subject, location=self.recorder.location())

    def _observe_leftovers(self) -> list[int]:
        """The optimizers whose gradients hold something before a backward pass starts; notes those found empty."""
        recorder = self.recorder
        measured = recorder.step < _MEASURED_STEPS or recorder.sampled
        carried = []
        for optimizer, state in list(self._states.items()):
            if state.cleared:
                continue
            left = [tensor.grad for group in optimizer.param_groups for tensor in group["params"] if tensor.grad is not None]
            if not left:
                state.cleared = True
            elif measured:
                state.cleared = _norm_of(left) == 0.0
                if not state.cleared:
                    carried.append(state.id)
        return carried

    # Backward

    def _watched_backward(self) -> Any:
        original: Any = torch.autograd.backward

        def watched(tensors: Any, *args: Any, **kwargs: Any) -> None:
            if torch.compiler.is_compiling() or not self.recorder.active:
                original(tensors, *args, **kwargs)
                return
            self._before_backward(tensors, kwargs)
            original(tensors, *args, **kwargs)
            self._after_backward()

        return watched

    @guarded
    def _before_backward(self, tensors: Any, kwargs: Any) -> None:
        recorder = self.recorder
        loss = tensors if isinstance(tensors, Tensor) else next((part for part in tensors if isinstance(part, Tensor)), None)
        origin = self._trace.origin(loss) if loss is not None and self._trace.is_on else None
        self._trace.end()
        carried = [] if self._stepping or self._backwards else self._observe_leftovers()
        value = None
        if loss is not None and loss.numel() == 1:
            if self.unscaled is not None and self.unscaled[0]() is loss:
                value = self.unscaled[1]
            else:
                with torch.no_grad():
                    value = number(loss)
        self._loss = value
        self._backwards += 1
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
        known = value if isinstance(value, float) else None
        seq = recorder.event("backward", value=known, detail=detail, location=recorder.location())
        self._last_backward = seq

    @guarded
    def _after_backward(self) -> None:
        """Without an optimizer that steps, each backward pass is a step."""
        if self._stepping:
            return
        self._backwards_without_step += 1
        waits_for_optimizer = self._ever_stepped or (self._optimizers and self._backwards_without_step <= _PATIENCE)
        if not waits_for_optimizer:
            if self.recorder.sampled:
                self._registry.snapshot(self.recorder.step, gradients=True)
            self._end_step(None, None, None, None, None)

    def _watched_grad(self) -> Any:
        original: Any = torch.autograd.grad

        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not torch.compiler.is_compiling():
                self._gradient_taken(kwargs)
            return result

        return watched

    @guarded
    def _gradient_taken(self, kwargs: Any) -> None:
        detail = {"create_graph": bool(kwargs.get("create_graph"))}
        self.recorder.event("gradient_of_gradient", location=self.recorder.location(), detail=detail)

    # Clipping

    def _watched_clip(self, kind: str, original: Any) -> Any:
        def watched(parameters: Any, *args: Any, **kwargs: Any) -> Any:
            if not self.recorder.active:
                return original(parameters, *args, **kwargs)
            tensors = [parameters] if isinstance(parameters, Tensor) else list(parameters)
            norm = original(tensors, *args, **kwargs)
            limit = args[0] if args else next((kwargs[name] for name in ("max_norm", "clip_value") if name in kwargs), None)
            self._clipped_by(kind, limit, tensors, norm)
            return norm

        return watched

    @guarded
    def _clipped_by(self, kind: str, limit: Any, tensors: list[Tensor], norm: Any) -> None:
        value = number(norm) if isinstance(norm, Tensor) else None
        known = value if isinstance(value, float) else None
        detail = {"kind": kind, "limit": float(limit) if limit is not None else None}
        self.recorder.event("clip", value=known, detail=detail, location=self.recorder.location())
        if kind == "norm" and known is not None and limit is not None:
            self._clipped = ({id(tensor) for tensor in tensors}, min(known, float(limit)))

    # Optimizer steps

    @guarded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if self._stepping:
            return
        self._trace.end()
        recorder = self.recorder
        state = self.state_of(optimizer)
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if len(tensors) != len(state.tensors):
            self._register_parameters(optimizer, state)
        gradients = [tensor.grad for tensor in tensors if tensor.grad is not None]
        with torch.no_grad():
            norm = _norm_of(gradients)
        self._stepping = True
        state.steps += 1
        for row, tensor in zip(state.parameters, tensors, strict=True):
            row[5] += 1
            if tensor.grad is None:
                row[6] += 1
        self._pending = {
            "norm": norm,
            "cleared": state.cleared if state.steps > 1 else None,
            "with": len(gradients),
            "without": len(tensors) - len(gradients),
            "clipped": self._clipped[1] if self._clipped and self._clipped[0] >= {id(tensor) for tensor in tensors} else None,
        }
        self._note_hyperparameters(optimizer, state)
        if recorder.sampled:
            self._sample(state)

    def _sample(self, state: _OptimizerState) -> None:
        recorder = self.recorder
        for row in state.parameters:
            recorder.row("optimizer_parameter", tuple(row))
        self._registry.snapshot(recorder.step, gradients=True)
        with torch.no_grad():
            for key, tensor in self._registry.parameters():
                if tensor.grad is not None and is_plain(tensor.grad):
                    self._registry.stat(recorder.step, "gradient", key, 0, tensor.grad)

    @guarded
    def _after_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        pending, self._pending = self._pending, None
        if not self._stepping or pending is None:
            return
        self._stepping = False
        self._ever_stepped = True
        state = self.state_of(optimizer)
        detail = None
        norm, clipped = pending["norm"], pending["clipped"]
        if isinstance(norm, float) and clipped and norm and not 0.5 < clipped / norm < 2.0:
            detail = {"clipped_norm": clipped, "norm": norm}
        state.cleared = None
        self._end_step(state, norm, pending["cleared"], pending["with"], pending["without"], detail)

    def skipped(self, optimizer: Optimizer) -> None:
        """A gradient scaler left the optimizer's step out: the training step is over all the same."""
        if self._stepping:
            return
        state = self.state_of(optimizer)
        cleared = state.cleared if state.steps else None
        state.cleared = None
        self._end_step(state, None, cleared, None, None, {"skipped": True})

    def _end_step(
        self,
        state: _OptimizerState | None,
        norm: Any,
        cleared: bool | None,
        with_gradient: int | None,
        without_gradient: int | None,
        detail: dict[str, Any] | None = None,
    ) -> None:
        recorder = self.recorder
        if recorder.step == 0:
            for callback in self.on_first_step:
                callback()
        if state is None:
            seq = self._last_backward
        else:
            seq = recorder.event("optimizer_step", subject=state.id, detail=detail, location=recorder.location())
        loss, backwards = self._loss, self._backwards
        self._loss, self._backwards, self._backwards_without_step = None, 0, 0 if state is not None else self._backwards_without_step
        self._clipped = None
        self.unscaled = None
        recorder.end_step(
            seq=seq,
            optimizer=None if state is None else state.id,
            loss=loss,
            grad_norm=norm,
            backwards=backwards,
            cleared=cleared,
            with_gradient=with_gradient,
            without_gradient=without_gradient,
        )

    def _register_parameters(self, optimizer: Optimizer, state: _OptimizerState) -> None:
        state.parameters, state.tensors = [], []
        for group_number, group in enumerate(optimizer.param_groups):
            for position, tensor in enumerate(group["params"]):
                key = self._registry.parameter_ids.get(tensor)
                self._registry.optimizer_of[tensor] = state.id
                row = [state.id, group_number, position, key, to_json(list(tensor.shape)), 0, 0]
                state.parameters.append(row)
                state.tensors.append(weakref.ref(tensor))
                self.recorder.row("optimizer_parameter", row)

    def _resolve_parameters(self) -> None:
        """A module was called for the first time: its parameters may be held by an optimizer already."""
        for state in self._states.values():
            for row, reference in zip(state.parameters, state.tensors, strict=True):
                tensor = reference()
                if row[3] is None and tensor is not None:
                    row[3] = self._registry.parameter_ids.get(tensor)
                    if row[3] is not None:
                        self.recorder.row("optimizer_parameter", tuple(row))

    def finish(self) -> None:
        for state in self._states.values():
            for row in state.parameters:
                self.recorder.row("optimizer_parameter", tuple(row))

    def _note_hyperparameters(self, optimizer: Optimizer, state: _OptimizerState) -> None:
        known = state.hyperparameters
        for place, group in enumerate(optimizer.param_groups):
            for name, value in group.items():
                if name == "params":
                    continue
                if isinstance(value, Tensor):
                    value = float(value) if value.numel() == 1 and value.device.type == "cpu" else dtype_name(value)  # noqa: PLW2901
                key = (place, name)
                if key not in known or known[key] != value:
                    known[key] = value
                    if value is None or isinstance(value, bool | int | float | str | tuple | list):
                        self.recorder.row("hyperparameter", (self.recorder.step, state.id, place, name, to_json(value)))

    # Schedulers

    def _watched_schedule(self, original: Any) -> Any:
        def watched(scheduler: Any, *args: Any, **kwargs: Any) -> Any:
            if self._scheduling or not self.recorder.active:
                return original(scheduler, *args, **kwargs)
            self._scheduling = True
            try:
                result = original(scheduler, *args, **kwargs)
            finally:
                self._scheduling = False
            self._scheduled(scheduler)
            return result

        return watched

    @guarded
    def _scheduled(self, scheduler: Any) -> None:
        state = self._states.get(getattr(scheduler, "optimizer", None))
        rate = scheduler.optimizer.param_groups[0]["lr"] if state is not None else None
        initial = getattr(scheduler, "_step_count", 1) <= 1 and getattr(scheduler, "last_epoch", 1) <= 0
        self.recorder.event(
            "scheduler_step",
            subject=None if state is None else state.id,
            value=float(rate) if rate is not None else None,
            detail={"type": type(scheduler).__name__, "initial": initial},
            location=self.recorder.location(),
        )


def _norm_of(gradients: list[Tensor]) -> Any:
    """The L2 norm over all gradients, with one kernel call per group of them; None when there are none."""
    dense = [gradient for gradient in gradients if is_plain(gradient)]
    if not dense:
        return None
    norms = torch._foreach_norm(dense)
    if len({(norm.dtype, norm.device) for norm in norms}) > 1:
        norms = [norm.to(dense[0].device, torch.float32) for norm in norms]
    return number(torch.linalg.vector_norm(torch.stack(norms)))
