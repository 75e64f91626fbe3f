"""Schedules that wait for a plateau of a measure, told the wrong direction: they take the measure's improvement for a plateau."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.store import Run
from trueline.views.schedules import Schedule, schedules_of

# A correlation of so many values that chance reaches in fewer than 2 % of cases (0.1 % from ten values on).
_FEWEST = 6
_ALIKE = 0.85
# What the rate was lowered to at least, for harm.
_LOWERED = 0.5


class WrongDirection(msgspec.Struct, frozen=True):
    """`measure` is what the schedule was told at each of its steps; `like` what it rises and falls with."""

    schedule: Schedule
    mode: str
    measure: list[float]
    like: str
    correlation: float


def wrong_direction(run: Run) -> WrongDirection | None:
    """A schedule in mode `max` that is told a loss, or in mode `min` an accuracy, and lowers the rate while that improves.

    A measure that falls together with the training loss from the beginning is a loss; one that rises with the share of
    evaluated samples that are right is an accuracy (a validation loss that rises by overfitting goes the other way).
    """
    for schedule in schedules_of(run):
        told = [(event.seq, event.detail.get("mode"), event.detail.get("measure")) for event in schedule.steps]
        if len(told) < _FEWEST or any(measure is None for _, _, measure in told):
            continue
        if not schedule.rates or min(schedule.rates) > _LOWERED * max(schedule.rates):
            continue
        places, mode = [place for place, _, _ in told], str(told[0][1])
        measure = np.array([value for _, _, value in told], np.float64)
        every = _training_losses(run, schedule, places) if mode == "max" else _accuracies(run, places)
        known = np.isfinite(every) & np.isfinite(measure)
        if known.sum() < _FEWEST:
            continue
        other = every[known]
        correlation = _correlation(measure[known], other)
        improves = other[-1] < other[0] if mode == "max" else other[-1] > other[0]
        if improves and correlation >= _ALIKE:
            like = "the training loss" if mode == "max" else "the accuracy of the evaluation"
            return WrongDirection(schedule, mode, measure.tolist(), like, correlation)
    return None


def _training_losses(run: Run, schedule: Schedule, places: list[int]) -> NDArray[np.float64]:
    """The mean loss of the training steps before each step of the schedule, since the one before it."""
    losses = {step.id: step.loss for step in run.steps if step.loss is not None}
    known = [(event.seq, losses[event.step]) for event in schedule.optimizer_steps if event.step in losses]
    return _means_between(places, known)


def _accuracies(run: Run, places: list[int]) -> NDArray[np.float64]:
    """The share of samples that were right in the evaluations before each step of the schedule."""
    judged = [
        (scores.seq, float(np.mean(np.array(scores.labels) == np.array(scores.predicted))))
        for scores in run.scores
        if not scores.training and scores.labels
    ]
    return _means_between(places, judged)


def _means_between(places: list[int], values: list[tuple[int, float]]) -> NDArray[np.float64]:
    """The mean of the values up to each place from the one before it; NaN where there are none."""
    found = []
    for before, place in pairwise([-1, *places]):
        own = [value for at, value in values if before < at <= place]
        found.append(float(np.mean(own)) if own else np.nan)
    return np.array(found)


def _correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Of the values or of their ranks, whichever is larger: where the rate was lowered only noise is left, in which ranks tell
    nothing; and beside an outlier values do not."""
    ranks = [np.unique(values, return_inverse=True)[1].astype(np.float64) for values in (one, other)]
    if min(np.ptp(each) for each in ranks) == 0:
        return 0.0
    return max(float(np.corrcoef(pair[0], pair[1])[0, 1]) for pair in ((one, other), ranks))
