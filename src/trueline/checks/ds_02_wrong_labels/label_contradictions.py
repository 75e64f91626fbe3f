"""Labels that contradict each other or the loss: one input with two labels, classes that training and evaluation number
differently, labels outside of what a loss takes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import msgspec
import numpy as np

from trueline.model import Batch, LossCall, Scores
from trueline.store import Run
from trueline.views.binomial import log10_binomial_tail
from trueline.views.margins import Stretch

# Inputs of fewer numbers repeat by themselves, with whatever label.
_RICH = 8
_FEWEST_CONFLICTS = 5
_CONFLICT_SHARE = 0.02
_MOSTLY_UNIQUE = 0.5
_FEWEST_PER_CLASS = 8
_LEARNT = 0.75
_LOG_CHANCE = -6.0
_LOG_ABSENT = -3.0
_FEWEST_CLASSES = 4
_BINARY = ("binary_cross_entropy", "binary_cross_entropy_with_logits")
_OUT_OF_BOUNDS = re.compile(r"Target (-?\d+) is out of bounds")


class Conflicts(msgspec.Struct, frozen=True):
    """Inputs that came with several labels: fingerprint to labels, out of `samples` different inputs; `batch` holds one."""

    labels: dict[int, tuple[int, ...]]
    samples: int
    batch: Batch

    @property
    def are_many(self) -> bool:
        return len(self.labels) >= max(_FEWEST_CONFLICTS, _CONFLICT_SHARE * self.samples)


def conflicting_labels(run: Run) -> Conflicts | None:
    """Samples of loaders whose inputs are equal to the last byte and whose labels are not, in one and the same pass.

    Only where inputs hold enough numbers to be unique but for copies, and where most are.
    """
    trained = {scores.batch for scores in run.scores if scores.training}
    loaders = {batch.loader for batch in run.batches if batch.seq in trained and batch.loader is not None}
    # Another loader may number the same samples for another task.
    found = [conflicts for loader in sorted(loaders) if (conflicts := _conflicts_of(run, loader)) is not None]
    return max(found, key=lambda one: len(one.labels), default=None)


def _conflicts_of(run: Run, loader: int) -> Conflicts | None:
    """In the first pass of a loader."""
    seen: dict[int, int] = {}
    labels: dict[int, set[int]] = defaultdict(set)
    first_with = None
    count = 0
    own = [batch for batch in run.batches if batch.loader == loader]
    for batch in own:
        if batch.epoch != own[0].epoch or batch.target_kind != "class" or batch.targets is None or not _is_rich(batch):
            continue
        for sample, target in zip(batch.fingerprints, batch.targets, strict=False):
            count += 1
            earlier = seen.setdefault(sample, int(target))
            if earlier != int(target):
                labels[sample] |= {earlier, int(target)}
                first_with = first_with or batch
    if first_with is None or len(seen) < _MOSTLY_UNIQUE * count:
        return None
    return Conflicts({sample: tuple(sorted(several)) for sample, several in labels.items()}, len(seen), first_with)


def _is_rich(batch: Batch) -> bool:
    sized = [field.get("shape", []) for field in batch.fields]
    return any(len(shape) > 1 and int(np.prod(shape[1:])) >= _RICH for shape in sized)


class Renumbering(msgspec.Struct, frozen=True):
    """Classes that the evaluation names by another number than the training: `classes` maps the evaluation's label to what the
    model predicts for it, `shares` how consistently."""

    classes: dict[int, int]
    shares: dict[int, float]
    counts: dict[int, int]
    batch: int


def renumbered_classes(run: Run, learnt: Stretch) -> Renumbering | None:
    """At least two classes that training gets right, and evaluation calls, nearly all of each, by one other class of its own.

    Inputs that are prepared differently send everything to a few classes; only another numbering is a one-to-one map.
    """
    judged = last_evaluation(run)
    if not judged:
        return None
    by_class: dict[int, Counter[int]] = defaultdict(Counter)
    for scores in judged:
        for label, predicted in zip(scores.labels, scores.predicted, strict=True):
            by_class[label][predicted] += 1
    recall = _recall(learnt)
    moved = {}
    for label, predictions in by_class.items():
        predicted, hits = predictions.most_common(1)[0]
        total = predictions.total()
        if total >= _FEWEST_PER_CLASS and predicted != label and hits >= _LEARNT * total and recall.get(predicted, 0) >= _LEARNT:
            moved[label] = (predicted, hits, total)
    targets = [predicted for predicted, _, _ in moved.values()]
    stays = {label for label, counter in by_class.items() if counter.most_common(1)[0][0] == label}
    if len(moved) < 2 or len(set(targets)) < len(targets) or stays.intersection(targets):
        return None
    # By chance a class would meet one other class out of all of them; the map as a whole is the test.
    chance = sum(log10_binomial_tail(hits, total, 0.5) for _, hits, total in moved.values())
    if chance > _LOG_CHANCE:
        return None
    return Renumbering(
        {label: predicted for label, (predicted, _, _) in moved.items()},
        {label: hits / total for label, (_, hits, total) in moved.items()},
        {label: total for label, (_, _, total) in moved.items()},
        judged[0].batch,
    )


class Absence(msgspec.Struct, frozen=True):
    """A class of the evaluation that no training sample has: what the model predicts for it, and for how many of its samples."""

    label: int
    predicted: int
    hits: int
    total: int
    batch: int


def absent_class(run: Run, learnt: Stretch) -> Absence | None:
    """The one class of the evaluation that training never names, and whose samples the model nearly all calls by one other.

    Several such classes are training on a part of the classes on purpose, as in class-incremental learning.
    """
    judged = last_evaluation(run)
    trained = {int(label) for label in np.unique(learnt.labels)}
    by_class: dict[int, Counter[int]] = defaultdict(Counter)
    for scores in judged:
        for label, predicted in zip(scores.labels, scores.predicted, strict=True):
            by_class[label][predicted] += 1
    absent = [label for label in by_class if label not in trained]
    if len(absent) != 1 or len(by_class) < _FEWEST_CLASSES:
        return None
    predicted, hits = by_class[absent[0]].most_common(1)[0]
    total = by_class[absent[0]].total()
    right = _recall(learnt).get(predicted, 0.0) >= _LEARNT
    # Under the null a stranger to the model falls to one of two classes at most evenly.
    if not right or total < _FEWEST_PER_CLASS or log10_binomial_tail(hits, total, 0.5) > _LOG_ABSENT:
        return None
    return Absence(absent[0], predicted, hits, total, judged[0].batch)


def last_evaluation(run: Run) -> list[Scores]:
    """The judgements outside of training since the last training step that was judged, or in the last half of them."""
    judged = [scores for scores in run.scores if not scores.training]
    return judged[len(judged) // 2 :] if len(judged) > 1 else judged


def _recall(stretch: Stretch) -> dict[int, float]:
    labels, inverse, counts = np.unique(stretch.labels, return_inverse=True, return_counts=True)
    right = np.bincount(inverse, ~stretch.disagrees) / counts
    return {int(label): float(share) for label, share in zip(labels, right, strict=True)}


def label_out_of_range(run: Run) -> tuple[int, str | None] | None:
    """The class that a loss refused, with the message, when the script ended because of it."""
    match = _OUT_OF_BOUNDS.search(run.info.error or "")
    return None if match is None else (int(match[1]), run.info.error)


def binary_labels_out_of_range(run: Run) -> LossCall | None:
    """A loss over two classes that was given targets outside of 0 to 1, which it takes without a word."""
    for call in run.loss_calls:
        low, high = call.target.get("min"), call.target.get("max")
        if call.kind in _BINARY and call.grad and low is not None and high is not None and (low < 0 or high > 1):
            return call
    return None
