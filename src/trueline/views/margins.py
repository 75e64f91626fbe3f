"""How the training samples were judged over the run: margins by sample, in stretches of the training that double in length.

A sample *disagrees* in a stretch when its mean margin is negative: the model prefers another class to its label. It lies
*deep* when it is preferred for that class by more than half of the class's own samples are. Where classes overlap, samples on
the wrong side crowd at the boundary and few lie deep; wrong labels are spread like the samples of the class they belong to.
"""

from __future__ import annotations

from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import Batch, Scores
from trueline.store import Run
from trueline.views.binomial import log10_binomial_tail

# A batch of this size with one label only was put together by label, as the real and the made-up samples of a GAN are.
_TELLING_SIZE = 8
# Passes that are needed to follow samples from pass to pass; fewer are judged by the second half of the steps.
_FEWEST_PASSES = 3
# A stretch that ends before this share of the training tells of what was hard at first.
_FIRST_SHARE = 0.25
_FEWEST_OWN = 5
# More disagreement than this, and the model has not learnt what the labels say.
MOST_DISAGREEMENT = 0.4
_HALF = 0.5
_LATELY = 0.2


class Stretch:
    """A part of the training: passes `first` to before `end`, one entry per sample in all arrays."""

    def __init__(self, visits: Visits, chosen: NDArray[np.bool_], first: int, end: int, passes: int) -> None:
        self.first, self.end, self.passes = first, end, passes
        samples, self._inverse = np.unique(visits.samples[chosen], return_inverse=True)
        count = len(samples)
        self.samples: NDArray[np.uint64] = samples
        self.visits = np.bincount(self._inverse, minlength=count)
        self.margins = np.bincount(self._inverse, visits.margins[chosen], minlength=count) / self.visits
        self.labels = np.zeros(count, np.int64)
        self.labels[self._inverse] = visits.labels[chosen]
        self.predicted, agreement = _most_predicted(self._inverse, visits.predicted[chosen], self.visits)
        self.disagrees = (self.margins < 0) & (self.predicted != self.labels)
        self._steady = agreement > _HALF
        steps = visits.steps[chosen]
        lately = steps >= np.quantile(steps, 1 - _LATELY)
        right = visits.predicted[chosen] == visits.labels[chosen]
        self.lately_right = float(right[lately].mean())
        """The accuracy at its end: that of its mean is less where the training is still learning."""

    @cached_property
    def disagreement(self) -> float:
        return float(self.disagrees.mean()) if len(self.samples) else 1.0

    @cached_property
    def own_margin(self) -> dict[int, float]:
        """The median margin of the samples that a class has right."""
        right = ~self.disagrees
        found = {}
        for label in np.unique(self.labels):
            own = self.margins[right & (self.labels == label)]
            if len(own) >= _FEWEST_OWN:
                found[int(label)] = float(np.median(own))
        return found

    @cached_property
    def deep(self) -> NDArray[np.bool_]:
        bound = np.array([self.own_margin.get(int(label), np.inf) for label in self.predicted])
        deep: NDArray[np.bool_] = self.disagrees & (self.margins < -bound) & self._steady & self._of_learnt_class
        return deep

    @cached_property
    def _of_learnt_class(self) -> NDArray[np.bool_]:
        """A class most of whose samples disagree has not been learnt, which says nothing of its labels."""
        _, inverse, counts = np.unique(self.labels, return_inverse=True, return_counts=True)
        learnt: NDArray[np.bool_] = np.bincount(inverse, self.disagrees)[inverse] < _HALF * counts[inverse]
        return learnt

    @cached_property
    def expected_deep(self) -> float:
        """How many would lie deep if the classes overlapped: where margins are logistic, the share of a class that lies deep is
        the square of the share that disagrees. By the labels or by the predictions, whichever gives more."""
        return max(_squares(self.labels, self.disagrees), _squares(self.predicted, self.disagrees))

    @cached_property
    def log10_chance(self) -> float:
        """Of as many deep samples, or more, under overlap (binomial)."""
        return log10_binomial_tail(int(self.deep.sum()), len(self.samples), self.expected_deep / max(1, len(self.samples)))

    @cached_property
    def beyond(self) -> float:
        """The share of the deep samples that lie further out than nearly all (95 %) of the class they are predicted as."""
        if not self.deep.any():
            return 0.0
        ends = {
            label: float(np.quantile(self.margins[(self.labels == label) & ~self.disagrees], 0.95)) for label in self.own_margin
        }
        bound = np.array([ends.get(int(label), np.inf) for label in self.predicted[self.deep]])
        return float((self.margins[self.deep] < -bound).mean())

    @cached_property
    def scale(self) -> float:
        """What a usual margin is here: logits grow as the training goes on."""
        return float(np.median(np.abs(self.margins))) or 1.0


class Visits(msgspec.Struct, frozen=True):
    """One entry per judgement of a training sample. `passes` counts the passes over the data."""

    samples: NDArray[np.uint64]
    labels: NDArray[np.int64]
    predicted: NDArray[np.int64]
    margins: NDArray[np.float64]
    number: NDArray[np.int64]
    steps: NDArray[np.int64]
    passes: int
    from_loader: bool
    batches: dict[int, Batch]

    @property
    def count(self) -> int:
        return len(self.samples)

    @property
    def classes(self) -> int:
        return int(max(self.labels.max(), self.predicted.max())) + 1 if self.count else 0

    @property
    def are_bounded(self) -> bool:
        """Whether the scores are probabilities, whose margins end at 1 for right and wrong alike."""
        return bool(np.abs(self.margins).max() <= 1.0) if self.count else False

    def stretches(self) -> list[Stretch]:
        """Stretches that double in length, without the first pass and what ends early."""
        if self.passes < _FEWEST_PASSES:
            chosen = self.steps >= (int(self.steps.max()) + int(self.steps.min())) / 2
            return [Stretch(self, chosen, 0, self.passes, self.passes)] if chosen.any() else []
        found, first = [], 1
        while first < self.passes:
            end = min(2 * first, self.passes)
            chosen = (self.number >= first) & (self.number < end)
            if end > _FIRST_SHARE * self.passes and chosen.any():
                found.append(Stretch(self, chosen, first, end, self.passes))
            first *= 2
        return found


def training_visits(run: Run) -> Visits | None:
    """All judgements of training samples with one and the same label; None when there are none."""
    batches = {batch.seq: batch for batch in run.batches}
    numbers = _visit_numbers(run)
    parts: list[tuple[Scores, Batch]] = []
    for scores in run.scores:
        batch = batches.get(scores.batch)
        if scores.training and batch is not None and _is_followed(scores, batch):
            parts.append((scores, batch))
    if not parts:
        return None
    samples = np.concatenate([np.array(batch.fingerprints, np.uint64) for _, batch in parts])
    labels = np.concatenate([np.array(scores.labels, np.int64) for scores, _ in parts])
    # A sample with several labels is no matter of margins.
    unique, inverse = np.unique(samples, return_inverse=True)
    low, high = np.full(len(unique), np.iinfo(np.int64).max), np.full(len(unique), np.iinfo(np.int64).min)
    np.minimum.at(low, inverse, labels)
    np.maximum.at(high, inverse, labels)
    kept = (low == high)[inverse]
    number = np.concatenate(
        [np.full(batch.size, batch.epoch, np.int64) if batch.epoch is not None else numbers[batch.seq] for _, batch in parts]
    )
    return Visits(
        samples[kept], labels[kept],
        np.concatenate([np.array(scores.predicted, np.int64) for scores, _ in parts])[kept],
        np.concatenate([np.array(scores.margins, np.float64) for scores, _ in parts])[kept],
        number[kept],
        np.concatenate([np.full(batch.size, scores.step, np.int64) for scores, batch in parts])[kept],
        int(number.max()) + 1,
        all(batch.loader is not None for _, batch in parts),
        batches,
    )  # fmt: skip


def _is_followed(scores: Scores, batch: Batch) -> bool:
    """Whether each judgement belongs to a sample, and the label to what the batch came with (not to another task's)."""
    if len(scores.labels) != len(batch.fingerprints) or not np.isfinite(scores.margins).all():
        return False
    if batch.target_kind == "class" and batch.targets is not None and tuple(map(int, batch.targets)) != scores.labels:
        return False
    if scores.labels == tuple(range(len(scores.labels))):
        # Each sample is its own class: a contrastive loss.
        return False
    return batch.size < _TELLING_SIZE or len(set(scores.labels)) > 1


def _visit_numbers(run: Run) -> dict[int, NDArray[np.int64]]:
    """For hand-made batches: how often each of their samples had been used before."""
    seen: dict[int, int] = {}
    found = {}
    for batch in run.batches:
        if batch.epoch is None:
            found[batch.seq] = np.array([seen.get(sample, 0) for sample in batch.fingerprints], np.int64)
            for sample in set(batch.fingerprints):
                seen[sample] = seen.get(sample, 0) + 1
    return found


def _most_predicted(
    inverse: NDArray[np.int64], predicted: NDArray[np.int64], visits: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The class that each sample is predicted as most often, and how large a share that is."""
    classes = int(predicted.max()) + 1 if len(predicted) else 1
    pairs, counts = np.unique(inverse * classes + predicted, return_counts=True)
    order = np.argsort(counts, kind="stable")
    most = np.zeros(len(visits), np.int64)
    share = np.zeros(len(visits))
    # The largest count of a sample is written last.
    most[pairs[order] // classes] = pairs[order] % classes
    share[pairs[order] // classes] = counts[order]
    return most, share / visits


def _squares(groups: NDArray[np.int64], disagrees: NDArray[np.bool_]) -> float:
    _, inverse, counts = np.unique(groups, return_inverse=True, return_counts=True)
    shares = np.minimum(np.bincount(inverse, disagrees) / counts, _HALF)
    return float((counts * shares**2).sum())


def suspicion(stretches: list[Stretch]) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
    """All samples and their mean margin in units of what is usual, most suspicious (lowest) first.

    Stretches in which the model has not learnt yet, or has learnt by heart what it disagreed with, do not count.
    """
    learnt = [stretch for stretch in stretches if stretch.disagreement < MOST_DISAGREEMENT] or stretches[-1:]
    most = max((int(stretch.disagrees.sum()) for stretch in learnt), default=0)
    telling = [stretch for stretch in learnt if stretch.disagrees.sum() >= _HALF * most] or learnt
    if not telling:
        return np.zeros(0, np.uint64), np.zeros(0)
    samples, inverse = np.unique(np.concatenate([stretch.samples for stretch in telling]), return_inverse=True)
    weights = np.concatenate([stretch.visits for stretch in telling])
    scaled = np.concatenate([stretch.margins / stretch.scale for stretch in telling])
    means = np.bincount(inverse, weights * scaled) / np.bincount(inverse, weights)
    order = np.argsort(means, kind="stable")
    return samples[order], means[order]
