"""Optimizers: what they hold, and their steps with the hyper-parameters of each."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from mindspore import Parameter, Tensor
from numpy.typing import NDArray

from trueline.adapters.base import essential, guarded
from trueline.adapters.mindspore.graph import OpTrace
from trueline.adapters.mindspore.kinds import OPTIMIZERS
from trueline.adapters.mindspore.rates import Groups, groups_of, parameters_of
from trueline.adapters.mindspore.recovered import Memory, gradients_in, memories_of
from trueline.adapters.mindspore.registry import Registry
from trueline.adapters.mindspore.tensors import LateNorm, array_of, evenly_drawn, is_plain, norm_of
from trueline.adapters.shared.optimizers import GROUP, PARAMETER, WITHOUT_GRADIENT, HeldParameters
from trueline.adapters.shared.steps import StepProgress
from trueline.recorder import Recorder, to_json
from trueline.recorder.patches import Patches

# Values of each parameter that are kept over a sampled step, to see what the step adds to them.
_COMPARED_VALUES = 1 << 16
# Of sums of gradients that the script keeps; fewer values tell nothing, and so do directions that differ by more than rounding.
_COMPARED_SUM = 1 << 12
_FEWEST_COMPARED = 8
_SAME_DIRECTION = 0.9999
# Optimizers built while the training runs whose first steps are looked at closely.
_MOST_LATER_LOOKS = 2


class _State:
    """What is known of one optimizer."""

    def __init__(self, identity: int) -> None:
        self.id = identity
        self.steps = 0
        self.groups: Groups | None = None
        self.hyperparameters: dict[tuple[int, str], Any] = {}
        self.rows: list[list[Any]] = []
        self.tensors: list[weakref.ref[Parameter]] = []
        self.before: list[tuple[int, Parameter, Any]] = []
        # Of a compiled step: what tells its gradients when it is over.
        self.memories: list[Memory] = []
        # Which of the sums that the script handed over was looked at, and its values at the last step.
        self.kept: tuple[int, NDArray[Any]] | None = None


class OptimizerWatch(HeldParameters):
    """Told of calls of optimizers by whoever watches calls of cells, and of compiled steps."""

    def __init__(self, recorder: Recorder, registry: Registry, trace: OpTrace, progress: StepProgress) -> None:
        super().__init__(recorder, registry)
        self._registry = registry
        self._trace = trace
        self._progress = progress
        self._built = 0
        self.on_built: list[Callable[[int, list[Any]], None]] = []
        self._later_looks = _MOST_LATER_LOOKS
        # Gradients that gradient functions made since the last step, and what clipping and unscaling made of them.
        self._fresh: set[int] = set()
        self._kept_alive: list[Any] = []
        # Whether the gradients of the running step are finite, where the script asked.
        self._finite: Any = None

    def install(self, patches: Patches) -> None:
        for kind in OPTIMIZERS:
            patches.replace(kind, "__init__", self._watched_construction(kind.__init__))

    @property
    def any_built(self) -> bool:
        return self._built > 0 or self.is_off(self._constructed)

    def id_of(self, optimizer: Any) -> int | None:
        """The number of an optimizer; None for what is none."""
        return self._state_of(optimizer).id if isinstance(optimizer, OPTIMIZERS) else None

    def alive(self) -> list[Any]:
        return [optimizer for optimizer, _ in self._states.items()]

    def _state_of(self, optimizer: Any, built: int | None = None) -> _State:
        state = self._states.get(optimizer)
        if state is None:
            self._built += 1
            state = self._states[optimizer] = _State(self._built)
            self.recorder.row("optimizer", (state.id, type(optimizer).__name__, built))
            if self.recorder.alignment is not None:
                self.recorder.alignment.noise.begin()
        return state  # type: ignore[no-any-return]

    def _watched_construction(self, original: Any) -> Any:
        watch = self

        def __init__(optimizer: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807 - it replaces that method
            original(optimizer, *args, **kwargs)
            watch._constructed(optimizer, original, args, kwargs)

        return __init__

    @guarded
    def _constructed(self, optimizer: Any, original: Any, args: Any, kwargs: Any) -> None:
        state = self._state_of(optimizer, built=self.recorder.location())
        state.groups = groups_of(optimizer, args, kwargs)
        for callback in self.on_built:
            callback(state.id, state.groups.given_rates)
        if self.recorder.step and self._later_looks:
            # Another phase begins, maybe with other layers and other frozen ones.
            self._later_looks -= 1
            self.recorder.look_closely()

    def note_fresh(self, gradients: list[Any]) -> None:
        """These were made since the last step, from nothing or from others that were."""
        self._fresh.update(map(id, gradients))
        self._kept_alive.append(gradients)

    def is_fresh(self, gradients: Any) -> bool:
        return any(id(gradient) in self._fresh for gradient in gradients)

    def note_finite(self, finite: Any) -> None:
        """The script asked whether gradients are finite, and was given this tensor."""
        self._finite = finite

    @guarded
    def settle(self) -> None:
        """The model is called again, or the script ends: where the script found gradients that are not finite and no optimizer
        has stepped since, it left the step out."""
        optimizers = self.alive()
        if self._finite is not None and self._progress.backwards and len(optimizers) == 1 and not bool(array_of(self._finite)):
            self.skipped(optimizers[0])

    # Steps

    def before_step(self, optimizer: Any, gradients: Any) -> dict[str, Any] | None:
        """Note the gradients that the step is going to use; they are None where it is part of a compiled graph."""
        self._progress.inside_optimizer = self.recorder.active
        begun: dict[str, Any] | None = self._step_begins(optimizer, gradients)
        return begun

    @guarded
    def _step_begins(self, optimizer: Any, gradients: Any) -> dict[str, Any]:
        state = self._state_of(optimizer)
        self._trace.end()
        state.steps += 1
        return {"optimizer": state.id, **(self._measured(optimizer, state, gradients) or {})}

    @guarded
    def _measured(self, optimizer: Any, state: _State, gradients: Any) -> dict[str, Any]:
        parameters = parameters_of(optimizer)
        if len(parameters) != len(state.tensors):
            self._register_parameters(optimizer, state, parameters)
        if gradients is None:
            self._note_hyperparameters(optimizer, state)
            self._sample(optimizer, state, parameters, None)
            return {}
        given = list(gradients)
        held = [gradient for gradient in given if isinstance(gradient, Tensor)]
        self._registry.note_gradients(parameters, given)
        without = self._count_without_gradient(state)
        self._sample(optimizer, state, parameters, given)
        return {
            "grad_norm": LateNorm(held, 1.0 / getattr(optimizer, "loss_scale", 1.0)) if held else None,
            "cleared": self._started_from_nothing(state, given),
            "with_gradient": len(parameters) - without,
            "without_gradient": without,
            "detail": self._changed_after_clipping(held) if self._progress.clipped is not None else None,
        }

    def moved(self, optimizer: Any) -> Iterator[tuple[int, bool]]:
        """On a sampled step that was compiled, when it is over: which parameters it has changed."""
        for number, parameter, before in self._state_of(optimizer).before:
            yield number, not np.array_equal(before, evenly_drawn(parameter, _COMPARED_VALUES))

    def count_without_gradient(self, optimizer: Any) -> int:
        """The step was compiled: how many of the parameters no gradient can have arrived at."""
        return self._count_without_gradient(self._state_of(optimizer))

    def _started_from_nothing(self, state: _State, given: list[Any]) -> bool | None:
        """Whether gradients hold nothing from before the last step. Those that a gradient function made never do; a sum that the
        script keeps is compared with what was added to it since then."""
        kept = state.kept
        state.kept = None
        if self.is_fresh(given):
            return True if state.steps > 1 else None
        place = _place_to_compare(given)
        if place is None:
            return None
        now = evenly_drawn(given[place], _COMPARED_SUM)
        state.kept = (place, now)
        added = [evenly_drawn(made[place], _COMPARED_SUM) for made in self._kept_alive if _fits(made, given, place)]
        if kept is None or kept[0] != place or not added:
            return None
        total = np.sum(added, axis=0)
        alone, on_top = _alike(now, total), _alike(now - kept[1], total)
        return alone if alone != on_top else None

    def _count_without_gradient(self, state: _State) -> int:
        """How many of the parameters no gradient can arrive at."""
        if not self._registry.cut_off:
            return 0
        without = [row for row in state.rows if row[PARAMETER] in self._registry.cut_off]
        for row in without:
            row[WITHOUT_GRADIENT] += 1
        return len(without)

    def _memories(self, optimizer: Any, state: _State, parameters: list[Parameter]) -> list[Memory]:
        known = state.hyperparameters
        groups = [row[GROUP] for row in state.rows]
        rates = [rate if isinstance(rate := known.get((group, "lr")), float) else None for group in groups]
        decays = [decay if isinstance(decay := known.get((group, "weight_decay")), float) else 0.0 for group in groups]
        return memories_of(optimizer, parameters, rates, decays)

    @guarded
    def _sample(self, optimizer: Any, state: _State, parameters: list[Parameter], gradients: list[Any] | None) -> None:
        if not self.recorder.sampled:
            return
        self._write_rows(state)
        if gradients is None:
            self._registry.snapshot(self.recorder.step)
            known = len(state.rows) == len(parameters) and not self.recorder.graph_tensors
            state.memories = self._memories(optimizer, state, parameters) if known else []
        else:
            self._registry.sample_gradients()
        state.before = [
            (number, parameter, evenly_drawn(parameter, _COMPARED_VALUES))
            for parameter in parameters
            if (number := self._registry.parameter_ids.get(parameter)) is not None and is_plain(parameter) and parameter.size
        ]

    def after_step(self, optimizer: Any, pending: dict[str, Any] | None) -> None:
        """The step is over. `pending` is what `before_step` gave: None where that failed."""
        self._progress.inside_optimizer = False
        pending = {} if pending is None else pending
        self._note_updates(optimizer, pending)
        self._step_over(optimizer, pending)

    @guarded
    def _note_updates(self, optimizer: Any, pending: dict[str, Any]) -> None:
        state = self._state_of(optimizer)
        if "grad_norm" in pending:
            # Not before the step: reading a number would have waited for the gradients, which the step waits for anyway.
            self._note_hyperparameters(optimizer, state)
        values, state.before = state.before, []
        for number, parameter, before in values:
            self._registry.note_update(number, before, evenly_drawn(parameter, _COMPARED_VALUES))
        if state.memories:
            pending["grad_norm"] = self._recover_gradients(state)

    @essential
    def _step_over(self, optimizer: Any, pending: dict[str, Any]) -> None:
        self._forget()
        self._progress.end(**{"optimizer": self._state_of(optimizer).id, **pending})

    @guarded
    def _recover_gradients(self, state: _State) -> float | None:
        """Record the gradients of a compiled step, and give their norm; None unless all are known."""
        square, seen = 0.0, 0
        for parameter, gradient in gradients_in(state.memories):
            number = self._registry.parameter_ids.get(parameter)
            if number is not None and number not in self._registry.cut_off:
                self._registry.stat(self.recorder.step, "gradient", number, 0, gradient)
            square += norm_of([gradient]) ** 2
            seen += 1
        state.memories = []
        return math.sqrt(square) if seen == len(state.tensors) else None

    def _forget(self) -> None:
        self._finite = None
        self._fresh = set()
        self._kept_alive = []
        self._registry.forget_gradients()

    def put_off(self, optimizer: Any) -> None:
        """The optimizer was part of what ran and did not step."""
        self._progress.inside_optimizer = False
        state = self._state_of(optimizer)
        state.steps -= 1
        state.before = []
        state.memories = []

    def skipped(self, optimizer: Any) -> None:
        """The step was left out because a gradient is not finite: the training step is over all the same."""
        state = self._state_of(optimizer)
        state.memories = []
        self._forget()
        self._progress.end(optimizer=state.id, cleared=True if state.steps else None, detail={"skipped": True})

    def _changed_after_clipping(self, gradients: list[Tensor]) -> dict[str, Any] | None:
        """Whether the gradients were scaled by the script between clipping and this step."""
        clipped = self._progress.clipped
        if clipped is None or not self.recorder.sampled or not clipped[1]:
            return None
        norm = norm_of(gradients)
        if not norm or 0.5 < clipped[1] / norm < 2.0:
            return None
        return {"clipped_norm": clipped[1], "norm": norm}

    # What an optimizer holds

    @guarded
    def _register_parameters(self, optimizer: Any, state: _State, parameters: list[Parameter]) -> None:
        if state.groups is None:
            state.groups = groups_of(optimizer, (), {})
        state.rows, state.tensors = [], []
        positions: dict[int, int] = {}
        for parameter in parameters:
            group = state.groups.of_parameter.get(id(parameter), 0)
            position = positions[group] = positions.get(group, -1) + 1
            self._registry.optimizer_of[parameter] = state.id
            key = self._registry.parameter_ids.get(parameter)
            shape = to_json(list(parameter.shape))
            state.rows.append([state.id, group, position, key, shape, max(state.steps - 1, 0), 0])
            state.tensors.append(weakref.ref(parameter))
        self._write_rows(state)

    @guarded
    def _note_hyperparameters(self, optimizer: Any, state: _State) -> None:
        if state.groups is None:
            return
        known = state.hyperparameters
        # Schedules are compared step by step in aligned runs.
        sampled = self.recorder.sampled or self.recorder.alignment is not None
        for place, settings in enumerate(state.groups.at_step(optimizer, state.steps - 1, sampled=sampled)):
            for name, value in settings.items():
                if known.get((place, name), _State) != value:
                    known[place, name] = value
                    self.recorder.row("hyperparameter", (self.recorder.step, state.id, place, name, to_json(value)))


def _place_to_compare(given: list[Any]) -> int | None:
    """The smallest of the script's own sums that has enough values to tell directions apart."""
    sums = [(part.size, place) for place, part in enumerate(given) if isinstance(part, Tensor) and is_plain(part)]
    return min((one for one in sums if one[0] >= _FEWEST_COMPARED), default=(0, None))[1]


def _fits(made: list[Any], given: list[Any], place: int) -> bool:
    """Whether gradients stand in the order of the sums."""
    return len(made) == len(given) and isinstance(made[place], Tensor) and made[place].shape == given[place].shape


def _alike(one: NDArray[Any], other: NDArray[Any]) -> bool:
    """Whether two have the same direction: sums may be divided by the number of batches."""
    lengths = float(np.linalg.norm(one)) * float(np.linalg.norm(other))
    return lengths > 0 and float(one.dot(other)) > _SAME_DIRECTION * lengths
