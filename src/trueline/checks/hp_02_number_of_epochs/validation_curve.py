"""The loss on data that is not trained on, from evaluation to evaluation, beside the training loss."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import Batch
from trueline.store import Run
from trueline.views.calls import CallRoles
from trueline.views.curve import Curve

_MOSTLY = 0.5


class Validation(msgspec.Struct, frozen=True):
    """One set of samples that was evaluated again and again: the step before each evaluation, the mean loss, and the mean
    training loss since the evaluation before. `samples` is the number of samples in one evaluation."""

    steps: NDArray[np.int64]
    losses: NDArray[np.float64]
    training: NDArray[np.float64]
    samples: int


def validations(run: Run, curve: Curve) -> list[Validation]:
    """Every series of evaluations that the run made on samples it hardly trained on, the longest first."""
    points = _loss_points(run) or _score_points(run)
    batches = {batch.seq: batch for batch in run.batches}
    trained = _trained_samples(run)
    series: dict[Any, dict[int, list[tuple[float, int]]]] = defaultdict(lambda: defaultdict(list))
    for step, line, seq, value in points:
        batch = batches.get(seq) if seq is not None else None
        if batch is None or _is_trained(batch, trained):
            continue
        key = (line, batch.loader if batch.loader is not None else hash(batch.fingerprints))
        series[key][step].append((value, batch.size))
    found = [_validation(phases, curve) for phases in series.values()]
    return sorted((one for one in found if one is not None), key=lambda one: -len(one.steps))


def _loss_points(run: Run) -> list[tuple[int, Any, int | None, float]]:
    return [
        (event.step, event.location, event.subject, event.value)
        for event in run.events_of("eval_loss")
        if event.value is not None
    ]


def _score_points(run: Run) -> list[tuple[int, Any, int | None, float]]:
    """Where no loss is computed in evaluation: the loss between the label and its strongest rival, from the margins."""
    return [
        (score.step, None, score.batch, float(np.logaddexp(0.0, -np.array(score.margins)).mean()))
        for score in run.scores
        if not score.training and score.margins
    ]


def _trained_samples(run: Run) -> set[int]:
    roles = CallRoles(run)
    seen: set[int] = set()
    for calls in roles.training.values():
        for trained in calls:
            batch = None if trained.call.batch is None else roles.batches.get(trained.call.batch)
            seen.update(batch.fingerprints if batch else ())
    return seen


def _is_trained(batch: Batch, trained: set[int]) -> bool:
    return sum(sample in trained for sample in batch.fingerprints) > _MOSTLY * len(batch.fingerprints)


def _validation(phases: dict[int, list[tuple[float, int]]], curve: Curve) -> Validation | None:
    """The evaluations of one line on one set; those that saw only a part of it are left out."""
    counts = {step: sum(size for _, size in values) for step, values in phases.items()}
    whole = int(np.median(list(counts.values())))
    steps = sorted(step for step, count in counts.items() if count == whole)
    if len(steps) < 2:
        return None
    losses = [sum(value * size for value, size in phases[step]) / whole for step in steps]
    if not np.isfinite(losses).all():
        return None
    ids = np.array([step.id for step in curve.steps])
    training = []
    for before, after in zip([-1, *steps[:-1]], steps, strict=True):
        between = curve.losses[(ids >= before) & (ids < after)]
        training.append(float(between.mean()) if len(between) else float("nan"))
    return Validation(np.array(steps), np.array(losses), np.array(training), whole)


def noise_of(values: NDArray[np.float64]) -> float:
    """The standard deviation of a smooth curve's scatter, from its second differences (a straight line has none)."""
    return float(np.sqrt(np.mean(np.diff(values, 2) ** 2) / 6)) if len(values) > 2 else float("nan")
