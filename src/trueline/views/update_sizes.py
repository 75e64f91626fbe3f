"""How far an optimizer's steps move the weights, as a share of the weights' own size."""

from __future__ import annotations

import math
from collections import defaultdict

import msgspec
import numpy as np

from trueline.model import Event, HyperParameter, Location, Parameter
from trueline.store import Run
from trueline.views.curve import Curve
from trueline.views.parameters import ParameterHistory

_NOT_WEIGHTS = frozenset({"norm", "batch_norm", "layer_norm"})


class UpdateSize(msgspec.Struct, frozen=True):
    """One sampled step: the update's length over the weights' length: `typical` is the median of the weight matrices, `most`
    the largest of them (a layer of unusually large weights must not hide how the others move).
    `pull` is the length of the gradient times that of the weights: by how much the loss would change, at first order, if the
    weights changed by their own size."""

    step: int
    typical: float
    most: float
    pull: float


def update_sizes(run: Run, curve: Curve) -> list[UpdateSize]:
    """The updates of the weight matrices that the curve's optimizer holds, at the steps that were sampled."""
    wanted = {parameter.id for parameter in weight_matrices(run, curve.optimizer)}
    mine = {step.id for step in curve.steps}
    updates: dict[int, list[tuple[float, float]]] = defaultdict(list)
    gradients: dict[int, list[float]] = defaultdict(list)
    sizes: dict[int, list[float]] = defaultdict(list)
    for stat in run.stats("update"):
        if stat.subject in wanted and stat.step in mine and stat.l2 is not None and stat.weight_l2 is not None and not stat.nan:
            updates[stat.step].append((stat.l2, stat.weight_l2))
    for role, found in (("gradient", gradients), ("parameter", sizes)):
        for stat in run.stats(role):
            if stat.subject in wanted and stat.l2 is not None:
                found[stat.step].append(stat.l2)
    result = []
    for step, pairs in sorted(updates.items()):
        change, size = np.array(pairs).T
        if not np.isfinite(change).all() or not size.any():
            continue
        shares = change[size > 0] / size[size > 0]
        typical, most = float(np.median(shares)), math.inf if (change[size == 0] > 0).any() else float(shares.max())
        pull = float(np.linalg.norm(gradients.get(step, [0.0])) * np.linalg.norm(sizes.get(step, [0.0])))
        result.append(UpdateSize(step, typical, most, pull))
    return result


def weight_matrices(run: Run, optimizer: int) -> list[Parameter]:
    """The weights with two or more axes that an optimizer holds."""
    history = ParameterHistory(run)
    held = {
        history.first_of(place.parameter)
        for place in run.optimizer_parameters
        if place.optimizer == optimizer and place.parameter is not None and place.parameter in run.parameters
    }
    return [
        parameter
        for parameter in history.weights
        if parameter.id in held and len(parameter.shape) > 1 and run.modules[parameter.module].kind not in _NOT_WEIGHTS
    ]


def farthest_way(sizes: list[UpdateSize], curve: Curve) -> float:
    """How far any weight matrix can have moved over the run, as a share of its size: the sum over all steps, those between two
    samples taken in proportion. Steps that undo each other make the way that remains shorter, never longer."""
    steps = [step.id for step in curve.steps]
    return float(np.interp(steps, [size.step for size in sizes], [size.most for size in sizes]).sum())


def rates(run: Run, optimizer: int) -> list[HyperParameter]:
    """The learning rates of the optimizer's first group as they changed."""
    return [
        one
        for one in run.hyperparameters
        if one.optimizer == optimizer and one.group == 0 and one.name == "lr" and isinstance(one.value, int | float)
    ]


def rate_at(known: list[HyperParameter], step: int) -> float | None:
    before = [float(one.value) for one in known if one.step <= step]
    return before[-1] if before else None


def schedule_of(run: Run, optimizer: int) -> Event | None:
    """Where a schedule of the optimizer was built, or first stepped."""
    steps = [event for event in run.events_of("scheduler_step") if event.subject == optimizer and event.location is not None]
    built = [event for event in steps if event.detail.get("initial")]
    return next(iter(built or steps), None)


def place_of_rate(run: Run, optimizer: int, *, scheduled: bool) -> Location | None:
    """The line that sets the learning rate: the schedule's where it makes the difference, else the optimizer's."""
    schedule = schedule_of(run, optimizer) if scheduled else None
    return schedule.location if schedule is not None else run.optimizers[optimizer].built


def from_scratch(run: Run, curve: Curve) -> bool:
    """Whether the weights that are trained were made in this run, and by no earlier optimizer: small steps and short runs are
    right for weights that were trained before."""
    history = ParameterHistory(run)
    weights = weight_matrices(run, curve.optimizer)
    if not weights or run.events_of("load") or not all(history.is_fresh(weight) for weight in weights):
        return False
    earlier = {step.optimizer for step in run.steps if step.id < curve.steps[0].id} - {curve.optimizer, None}
    return not any(place.optimizer in earlier for weight in weights for place in history.held.get(weight.id, []))
