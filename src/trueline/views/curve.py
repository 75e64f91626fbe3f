"""The losses of an optimizer's training steps, and what a constant guess would have cost on the same targets."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import Batch, LossCall, Step
from trueline.store import Run
from trueline.views.calls import CallRoles

# The loss that was stepped on is a loss function's value when their ratio is the same at (nearly) all sampled steps.
_SAME_RATIO = 1e-3
_MOSTLY = 0.9
_CLASSES = ("cross_entropy", "nll_loss")
_TWO_CLASSES = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_VALUES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
# Line-search methods choose their own step and evaluate the loss several times in one.
_LINE_SEARCH = frozenset({"LBFGS"})


class Curve(msgspec.Struct, frozen=True):
    """The steps of one optimizer that have a loss. `kind` is the loss function the backward passes started from, when it was
    that alone; `guess` what the best constant prediction costs in the same unit, None where it is not known; `classes` the
    size of the class axis, None for other losses."""

    optimizer: int
    steps: list[Step]
    losses: NDArray[np.float64]
    kind: str | None
    guess: float | None
    classes: int | None

    @property
    def first_broken(self) -> int | None:
        """The position of the first step whose loss or gradient is not a finite number."""
        return next((place for place, step in enumerate(self.steps) if not step.finite), None)

    @property
    def late(self) -> NDArray[np.float64]:
        """The losses of the second half."""
        return self.losses[len(self.losses) // 2 :]


def training_curves(run: Run) -> list[Curve]:
    """One curve per optimizer that stepped, without those that search along a line, the longest first."""
    by_optimizer: dict[int, list[Step]] = defaultdict(list)
    for step in run.steps:
        if step.optimizer is not None and step.loss is not None:
            by_optimizer[step.optimizer].append(step)
    found = []
    targets = _training_targets(run) if by_optimizer else {}
    for optimizer, steps in by_optimizer.items():
        if run.optimizers[optimizer].type in _LINE_SEARCH:
            continue
        losses = np.array([step.loss for step in steps], dtype=np.float64)
        call, factor = _loss_behind(run, steps)
        guess = None if call is None else _cost_of_guess(call, targets)
        shape = [] if call is None else call.input.get("shape") or []
        classes = shape[1] if call is not None and call.kind in _CLASSES and len(shape) > 1 else None
        kind = None if call is None else call.kind
        found.append(Curve(optimizer, steps, losses, kind, None if guess is None else guess * factor, classes))
    return sorted(found, key=lambda curve: -len(curve.steps))


def alternate(curves: list[Curve]) -> bool:
    """Whether optimizers take turns, as in a GAN, rather than come one after the other, as folds and stages do."""
    spans = sorted((curve.steps[0].id, curve.steps[-1].id) for curve in curves)
    return any(one[1] > other[0] for one, other in pairwise(spans))


def _training_targets(run: Run) -> dict[str, list[Batch]]:
    """The batches that training steps were fed with, by the kind of their targets."""
    roles = CallRoles(run)
    found: dict[str, list[Batch]] = defaultdict(list)
    for calls in roles.training.values():
        for trained in calls:
            batch = None if trained.call.batch is None else roles.batches.get(trained.call.batch)
            if batch is not None and batch.targets is not None and batch.target_kind is not None:
                found[batch.target_kind].append(batch)
    return found


def _loss_behind(run: Run, steps: list[Step]) -> tuple[LossCall | None, float]:
    """The loss function whose value, times a constant (one over the accumulated batches), the backward passes started from."""
    by_step: dict[int, list[LossCall]] = defaultdict(list)
    for call in run.loss_calls:
        if call.grad and call.value is not None:
            by_step[call.step].append(call)
    sampled = [step for step in steps if step.sampled and step.finite and step.loss]
    ratios: dict[str, list[float]] = defaultdict(list)
    example: dict[str, LossCall] = {}
    for step in sampled:
        for call in by_step[step.id][-1:]:
            if call.value and step.loss:
                ratios[call.kind].append(step.loss / call.value)
                example.setdefault(call.kind, call)
    if len(ratios) != 1:
        return None, 1.0
    ((kind, values),) = ratios.items()
    middle = float(np.median(values))
    alike = sum(abs(value / middle - 1) < _SAME_RATIO for value in values) if middle > 0 else 0
    enough = alike >= _MOSTLY * len(values) and len(values) >= _MOSTLY * len(sampled)
    return (example[kind], middle) if enough else (None, 1.0)


def _cost_of_guess(call: LossCall, targets: dict[str, list[Batch]]) -> float | None:
    """The loss of the best prediction that is the same for all samples."""
    if call.settings.get("reduction", "mean") != "mean":
        return None
    shape = call.target.get("shape") or []
    single = math.prod(shape) == (shape[0] if shape else 0)
    plain = call.settings.get("weight") is None and not call.settings.get("label_smoothing")
    values = [value for kind in ("class", "value") for batch in targets.get(kind, []) for value in batch.targets or ()]
    if call.kind in _CLASSES:
        if single and plain and values:
            return _entropy(values)
        given = call.input.get("shape") or []
        return math.log(given[1]) if len(given) > 1 else None
    if call.kind in _TWO_CLASSES:
        plain = plain and call.settings.get("pos_weight") is None
        binary = single and plain and values and set(values) <= {0.0, 1.0}
        return _entropy(values) if binary else math.log(2)
    if call.kind in _VALUES and single and len(values) > 1:
        return _spread(np.array(values), call)
    return None


def _entropy(values: list[float]) -> float | None:
    counts = np.array(list(Counter(values).values()), dtype=np.float64)
    shares = counts / counts.sum()
    cost = float(-(shares * np.log(shares)).sum())
    return cost if cost > 0 else None


def _spread(values: NDArray[np.float64], call: LossCall) -> float | None:
    if call.kind == "mse_loss":
        cost = float(values.var())
    else:
        distance = np.abs(values - np.median(values))
        if call.kind != "l1_loss":
            edge = float(call.settings.get("beta", call.settings.get("delta", 1.0)) or 1.0)
            near = 0.5 * distance**2 / (edge if call.kind == "smooth_l1_loss" else 1.0)
            far = (distance - 0.5 * edge) * (1.0 if call.kind == "smooth_l1_loss" else edge)
            distance = np.where(distance < edge, near, far)
        cost = float(distance.mean())
    return cost if cost > 0 and math.isfinite(cost) else None


def block_means(values: NDArray[np.float64], blocks: int) -> NDArray[np.float64]:
    """The means of consecutive stretches: neighbouring losses depend on each other, far-apart stretches hardly do."""
    parts = np.array_split(values, min(blocks, len(values)))
    return np.array([part.mean() for part in parts if len(part)])


def trend(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mann and Kendall's test: tau in [-1, 1], and the chance of a tau at least as far from zero without a trend."""
    count = len(values)
    if count < 3:
        return 0.0, 1.0
    signs = np.sign(values[None, :] - values[:, None])
    score = float(signs[np.triu_indices(count, 1)].sum())
    variance = count * (count - 1) * (2 * count + 5) / 18
    z = (abs(score) - 1) / math.sqrt(variance) if score else 0.0
    return score / (count * (count - 1) / 2), math.erfc(max(z, 0.0) / math.sqrt(2))
