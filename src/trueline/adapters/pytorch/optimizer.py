"""Optimizers: what they hold, how gradients are cleared, and their steps with the hyper-parameters of each."""

from __future__ import annotations

import weakref
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from trueline.adapters.base import essential, guarded
from trueline.adapters.pytorch.graph import OpTrace
from trueline.adapters.pytorch.registry import Registry
from trueline.adapters.pytorch.tensors import dtype_name, evenly_drawn, is_plain, norm_of, version_of
from trueline.adapters.shared.optimizers import STEPS, WITHOUT_GRADIENT, HeldParameters
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder, to_json
from trueline.recorder.patches import Patches

# Until this step, and on every sampled one after it, leftover gradients are measured before a backward pass adds to them.
_MEASURED_STEPS = 20
# Values of each parameter that are kept over a sampled step, to see what the step adds to them.
_COMPARED_VALUES = 1 << 16
# Optimizers built while the training runs whose first steps are looked at closely.
_MOST_LATER_LOOKS = 2


class _State:
    """What is known of one optimizer. `cleared`: see model.Step, since its previous step."""

    def __init__(self, identity: int) -> None:
        self.id = identity
        self.cleared: bool | None = None
        self.steps = 0
        self.hyperparameters: dict[tuple[int, str], Any] = {}
        self.scheduled: dict[int, tuple[Any, ...]] = {}
        self.rows: list[list[Any]] = []
        self.tensors: list[weakref.ref[Tensor]] = []
        self.pending: dict[str, Any] = {}
        self.measured_step = -1
        self.left: tuple[weakref.ref[Tensor], weakref.ref[Tensor], int] | None = None
        self.before: list[tuple[int, Tensor, Tensor]] = []


class OptimizerWatch(HeldParameters):
    """Watches every optimizer through torch's global step hooks, and `zero_grad`."""

    def __init__(self, recorder: Recorder, registry: Registry, trace: OpTrace, progress: StepProgress) -> None:
        super().__init__(recorder, registry)
        self._registry = registry
        self._trace = trace
        self._progress = progress
        self._built = 0
        self._handles: list[Any] = []
        self._later_looks = _MOST_LATER_LOOKS

    def install(self, patches: Patches) -> None:
        self._handles = [register_optimizer_step_pre_hook(self._before_step), register_optimizer_step_post_hook(self._returned)]
        patches.replace(Optimizer, "__init__", self._watched_construction())
        patches.replace(Optimizer, "zero_grad", self._watched_zero_grad(Optimizer.zero_grad))
        patches.replace(nn.Module, "zero_grad", self._watched_zero_grad(nn.Module.zero_grad))

    def uninstall(self) -> None:
        for handle in self._handles:
            handle.remove()
        self._handles = []

    @property
    def any_built(self) -> bool:
        return self._built > 0 or self.is_off(self._constructed)

    def id_of(self, optimizer: Any) -> int | None:
        """The number of an optimizer; None for what is none."""
        return self._state_of(optimizer).id if isinstance(optimizer, Optimizer) else None

    def _state_of(self, optimizer: Optimizer, built: int | None = None) -> _State:
        state = self._states.get(optimizer)
        if state is None:
            self._built += 1
            state = self._states[optimizer] = _State(self._built)
            self.recorder.row("optimizer", (state.id, type(optimizer).__name__, built))
            if self.recorder.alignment is not None:
                self.recorder.alignment.noise.begin()
        return state  # type: ignore[no-any-return]

    def _watched_construction(self) -> Any:
        original: Any = Optimizer.__init__
        watch = self

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(optimizer, *args, **kwargs)
            watch._constructed(optimizer)

        return __init__

    @guarded
    def _constructed(self, optimizer: Optimizer) -> None:
        self._state_of(optimizer, built=self.recorder.location())
        if self.recorder.step and self._later_looks:
            # Another phase begins, maybe with other layers and other frozen ones.
            self._later_looks -= 1
            self.recorder.look_closely()

    # Clearing

    def _watched_zero_grad(self, original: Any) -> Any:
        def watched(owner: Any, *args: Any, **kwargs: Any) -> Any:
            result = original(owner, *args, **kwargs)
            self._cleared(owner)
            return result

        return watched

    @guarded
    def _cleared(self, owner: Any) -> None:
        if isinstance(owner, Optimizer):
            self._state_of(owner).cleared = True
        self.recorder.event("zero_grad", subject=self.id_of(owner), location=self.recorder.location())

    @guarded
    def leftovers(self) -> list[int]:
        """The optimizers whose gradients hold something before a backward pass starts; notes those found empty."""
        measured = self.recorder.step < _MEASURED_STEPS or self.recorder.sampled
        carried = []
        for optimizer, state in list(self._states.items()):
            if state.cleared:
                continue
            holders = [tensor for group in optimizer.param_groups for tensor in group["params"] if tensor.grad is not None]
            left = [gradient for tensor in holders if (gradient := tensor.grad) is not None]
            if not left:
                state.cleared = True
            elif measured:
                state.cleared = bool(norm_of(left) == 0.0)
                if not state.cleared:
                    carried.append(state.id)
                    state.left = (weakref.ref(holders[0]), weakref.ref(left[0]), version_of(left[0]))
        return carried

    @staticmethod
    def _was_replaced(state: _State) -> bool:
        """Whether the script has put gradients of its own in the place of those that were left, as it does for copies of the
        weights in full precision: then nothing was added to the old ones."""
        if state.left is None:
            return False
        holder, old, version = state.left
        state.left = None
        tensor, gradient = holder(), old()
        if tensor is None:
            return False
        return tensor.grad is not gradient or (gradient is not None and version_of(gradient) == version)

    # Steps

    @guarded
    def _before_step(self, optimizer: Optimizer, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        """Measure the gradients that the step uses: now, or, where the script hands over a closure, when that has made them."""
        progress = self._progress
        state = self._state_of(optimizer)
        if progress.inside_optimizer and not state.pending:
            # A step inside of another optimizer's step belongs to that one.
            return None
        self._trace.end()
        progress.inside_optimizer = True
        state.steps += 1
        # Marks the step as this optimizer's until a closure has run, and where it cannot be measured.
        state.pending = {"cleared": None}
        closure = args[1] if len(args) > 1 else kwargs.get("closure")
        if closure is None:
            self._measure(optimizer, state)
            return None
        measured = self._measured_closure(optimizer, state, closure)
        return ((args[0], measured, *args[2:]), kwargs) if len(args) > 1 else (args, {**kwargs, "closure": measured})

    def _measured_closure(self, optimizer: Optimizer, state: _State, closure: Any) -> Any:
        def measured(*args: Any, **kwargs: Any) -> Any:
            result = closure(*args, **kwargs)
            self._measure(optimizer, state)
            return result

        return measured

    @guarded
    def _measure(self, optimizer: Optimizer, state: _State) -> None:
        """Note the gradients that the step is going to use; a closure that is called again may change them."""
        tensors = [tensor for group in optimizer.param_groups for tensor in group["params"]]
        if len(tensors) != len(state.tensors):
            self._register_parameters(optimizer, state)
        gradients = [gradient for tensor in tensors if (gradient := tensor.grad) is not None]
        norm = norm_of(gradients)
        if self._was_replaced(state):
            state.cleared = True
        state.pending = {
            "grad_norm": norm,
            "cleared": state.cleared if state.steps > 1 else None,
            "with_gradient": len(gradients),
            "without_gradient": len(tensors) - len(gradients),
            "detail": self._changed_after_clipping(norm, tensors) if self._progress.clipped is not None else None,
        }
        if state.measured_step != self.recorder.step:
            state.measured_step = self.recorder.step
            self._note_step(optimizer, state, tensors)

    @guarded
    def _note_step(self, optimizer: Optimizer, state: _State, tensors: list[Tensor]) -> None:
        if state.pending["without_gradient"]:
            for row, tensor in zip(state.rows, tensors, strict=True):
                row[WITHOUT_GRADIENT] += tensor.grad is None
        self._note_hyperparameters(optimizer, state)
        if self.recorder.sampled:
            self._write_rows(state)
            with torch.no_grad():
                self._registry.sample_gradients()
                self._keep_values(state, tensors)

    @guarded
    def _keep_values(self, state: _State, tensors: list[Tensor]) -> None:
        state.before = [
            (number, tensor, evenly_drawn(tensor, _COMPARED_VALUES))
            for number, tensor in self._numbered(tensors)
            if tensor.grad is not None and is_plain(tensor) and tensor.numel()
        ]

    def _numbered(self, tensors: list[Tensor]) -> list[tuple[int, Tensor]]:
        """Those of the tensors that modules own, with their numbers."""
        numbers = ((self._registry.parameter_ids.get(tensor), tensor) for tensor in tensors)
        return [(number, tensor) for number, tensor in numbers if number is not None]

    def _returned(self, optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        """A step is over: of this optimizer, or of one that it calls."""
        self._note_updates(optimizer)
        self._after_step(optimizer)

    @guarded
    def _note_updates(self, optimizer: Optimizer) -> None:
        state = self._state_of(optimizer)
        before, state.before = state.before, []
        with torch.no_grad():
            for number, tensor, values in before:
                if not is_plain(tensor):
                    continue
                self._registry.note_update(number, values, evenly_drawn(tensor, _COMPARED_VALUES))

    @essential
    def _after_step(self, optimizer: Optimizer) -> None:
        state = self._state_of(optimizer)
        if not state.pending and not self.is_off(self._before_step):
            return
        self._progress.inside_optimizer = False
        pending, state.pending = state.pending, {}
        state.cleared = None
        self._progress.end(optimizer=state.id, **pending)

    def skipped(self, optimizer: Optimizer) -> None:
        """A gradient scaler left the optimizer's step out: the training step is over all the same."""
        if self._progress.inside_optimizer:
            return
        state = self._state_of(optimizer)
        cleared = state.cleared if state.steps else None
        state.cleared = None
        self._progress.end(optimizer=state.id, cleared=cleared, detail={"skipped": True})

    def _changed_after_clipping(self, norm: Any, tensors: list[Tensor]) -> dict[str, Any] | None:
        """Whether the gradients were scaled by the script between clipping and this step."""
        clipped = self._progress.clipped
        if clipped is None or not isinstance(norm, float) or not norm or not clipped[1]:
            return None
        if 0.5 < clipped[1] / norm < 2.0 or not clipped[0] >= {id(tensor) for tensor in tensors}:
            return None
        return {"clipped_norm": clipped[1], "norm": norm}

    # What an optimizer holds

    @guarded
    def _register_parameters(self, optimizer: Optimizer, state: _State) -> None:
        counted = {id(reference()): row for row, reference in zip(state.rows, state.tensors, strict=True)}
        state.rows, state.tensors = [], []
        for group_number, group in enumerate(optimizer.param_groups):
            for position, tensor in enumerate(group["params"]):
                self._registry.optimizer_of[tensor] = state.id
                key = self._registry.parameter_ids.get(tensor)
                counts = counted[id(tensor)][STEPS:] if id(tensor) in counted else [max(state.steps - 1, 0), 0]
                state.rows.append([state.id, group_number, position, key, to_json(list(tensor.shape)), *counts])
                state.tensors.append(weakref.ref(tensor))
        self._write_rows(state)

    @guarded
    def _note_hyperparameters(self, optimizer: Optimizer, state: _State) -> None:
        known = state.hyperparameters
        for place, group in enumerate(optimizer.param_groups):
            # What schedules change is looked at in every step, all the rest in those that are sampled.
            scheduled = (group.get("lr"), group.get("momentum"), group.get("betas"), group.get("weight_decay"))
            if not self.recorder.sampled and Tensor not in map(type, scheduled) and state.scheduled.get(place) == scheduled:
                continue
            state.scheduled[place] = scheduled
            for name, given in group.items():
                if name == "params":
                    continue
                value = _plain(given) if isinstance(given, Tensor) else given
                key = (place, name)
                if key not in known or known[key] != value:
                    known[key] = value
                    if value is None or isinstance(value, bool | int | float | str | tuple | list):
                        self.recorder.row("hyperparameter", (self.recorder.step, state.id, place, name, to_json(value)))


def _plain(value: Tensor) -> Any:
    return float(value) if value.numel() == 1 and value.device.type == "cpu" else dtype_name(value)
