"""Labels that have nothing to do with their inputs: learnt by heart, and right in the evaluation no more often than by chance."""

from __future__ import annotations

import math

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.checks.ds_02_wrong_labels.label_contradictions import last_evaluation
from trueline.model import Sample, Scores
from trueline.store import Run
from trueline.views.margins import Stretch

_FEWEST_JUDGED = 100
# Accuracy above chance: what training must have gained, and the share of it that evaluation must be shown not to have gained.
_LEARNT = 0.2
_CARRIED_OVER = 0.25
# One-sided, 99.5 %.
_SIGMAS = 2.6
# A model that calls everything alike says nothing of the labels.
_VARIED = 0.7
_FEWEST_SAMPLES = 20
_FEWEST_NUMBERS = 8
# Neighbouring numbers of noise have a squared correlation of 1/n in n samples; those of real data many times that.
_STRUCTURE = 4.0


class Unrelated(msgspec.Struct, frozen=True):
    """Accuracy of training and of evaluation (of `judged` samples) beside what independent labels would give; `structure` is the
    mean squared correlation of neighbouring numbers of the inputs, in units of what noise has."""

    training: float
    evaluation: float
    chance: float
    judged: int
    structure: float


def unrelated_labels(run: Run, stretches: list[Stretch]) -> Unrelated | None:
    """None where evaluation is better than chance, or cannot tell: too few, other classes, another model, inputs of noise."""
    judged = _of_trained_models(run, last_evaluation(run))
    labels = np.array([label for scores in judged for label in scores.labels], np.int64)
    predicted = np.array([label for scores in judged for label in scores.predicted], np.int64)
    samples = _samples_of(run, judged)
    if samples < _FEWEST_JUDGED or not stretches:
        return None
    last = stretches[-1]
    if not set(labels.tolist()) <= set(last.labels.tolist()) or np.bincount(predicted).max() > _VARIED * len(predicted):
        return None
    chance = _by_chance(labels, predicted)
    right = float((labels == predicted).mean())
    error = _SIGMAS * math.sqrt(chance * (1 - chance) / samples)
    learnt = max(1 - last.disagreement, last.lately_right)
    gained = learnt - _by_chance(last.labels, last.predicted)
    if gained < _LEARNT or abs(right - chance) > error or right - chance + error > _CARRIED_OVER * gained:
        return None
    structure = _structure(run.samples)
    if structure < _STRUCTURE:
        return None
    return Unrelated(learnt, right, chance, samples, structure)


def _of_trained_models(run: Run, judged: list[Scores]) -> list[Scores]:
    """Without what other models than the trained ones judged: a copy that has not learnt is right by chance, too."""
    trained = {call.module for call in run.root_calls if call.grad}
    others = {call.batch for call in run.root_calls if call.module not in trained}
    return [scores for scores in judged if scores.batch not in others]


def _samples_of(run: Run, judged: list[Scores]) -> int:
    """How many different samples were judged: a second judgement of a sample is no independent one."""
    batches = {scores.batch for scores in judged}
    return len({sample for batch in run.batches if batch.seq in batches for sample in batch.fingerprints})


def _by_chance(labels: NDArray[np.int64], predicted: NDArray[np.int64]) -> float:
    """The accuracy of these predictions if they had nothing to do with these labels."""
    classes = int(max(labels.max(), predicted.max())) + 1
    shares = [np.bincount(values, minlength=classes) / len(values) for values in (labels, predicted)]
    return float(shares[0] @ shares[1])


def _structure(samples: list[Sample]) -> float:
    """How far neighbouring numbers of the inputs go together, 1 for noise and 0 where that cannot be told."""
    kept = [sample for sample in samples if sample.dtype != "text"]
    if not kept or math.prod(kept[0].shape) < _FEWEST_NUMBERS:
        return 0.0
    alike = [sample for sample in kept if sample.shape == kept[0].shape and sample.dtype == kept[0].dtype]
    if len(alike) < _FEWEST_SAMPLES:
        return 0.0
    table = np.stack([np.frombuffer(sample.content, sample.dtype) for sample in alike]).astype(np.float64)
    table = table[:, np.isfinite(table).all(axis=0)]
    centred = table - table.mean(axis=0)
    spread = np.sqrt((centred**2).sum(axis=0))
    scaled = centred[:, spread > 0] / spread[spread > 0]
    if scaled.shape[1] < _FEWEST_NUMBERS:
        return 0.0
    neighbours = (scaled[:, 1:] * scaled[:, :-1]).sum(axis=0)
    return float((neighbours**2).mean() * len(alike))
