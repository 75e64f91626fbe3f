"""Tests of whether a sequence is in random order. Every null is a permutation of the same samples.

Random numbers come from a generator with a fixed seed: the same run is always concluded in the same way.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

_SEED = 20240301
_PERMUTATIONS = 200
# More labels than this make no test more certain, only slower.
_MOST_LABELS = 20_000
# Windows of fewer samples hold too few of a class for their counts to say anything.
_SMALLEST_WINDOW = 16

# With so many classes or more, and this share of samples in the place that sorting gives them, labels are nearly sorted.
_FEWEST_SORTED = 3
_IN_PLACE = 0.9


class LabelOrder(msgspec.Struct, frozen=True):
    """How unevenly class labels are spread over windows of consecutive samples.

    `ratio` is the chi-square statistic of the label counts per window over its mean under permutation (1: as random as it
    gets), `p` the chance of a statistic as large. `stretches` counts stretches of equal labels: as many as there are
    `classes` when the samples are sorted. `in_place` is the share of samples that stand where they would if the samples
    were sorted (classes in the order of their median places).
    """

    ratio: float
    p: float
    windows: int
    window_size: float
    samples: int
    classes: int
    stretches: int
    in_place: float

    @property
    def is_sorted(self) -> bool:
        return self.stretches <= 2 * self.classes and self.stretches < 0.1 * self.samples

    @property
    def is_nearly_sorted(self) -> bool:
        """Sorted, or mixed only where one class ends and the next begins, as a small shuffle buffer leaves it."""
        return self.is_sorted or (self.classes >= _FEWEST_SORTED and self.in_place >= _IN_PLACE)


def label_order(labels: NDArray[np.float64], batch_sizes: Sequence[int]) -> LabelOrder | None:
    """Test the labels of one epoch, in the order in which they were used; None when they are too few to tell."""
    labels = labels[:_MOST_LABELS]
    classes, codes = np.unique(labels, return_inverse=True)
    window_of = _windows(batch_sizes, len(labels))
    count = int(window_of[-1]) + 1 if len(labels) else 0
    if len(classes) < 2 or count < 3:
        return None
    expected = np.outer(np.bincount(window_of), np.bincount(codes)) / len(labels)

    def statistic(order: NDArray[np.int64]) -> float:
        seen = np.bincount(window_of * len(classes) + order, minlength=expected.size).reshape(expected.shape)
        return float(((seen - expected) ** 2 / expected).sum())

    random = np.random.default_rng(_SEED)
    null = np.array([statistic(random.permutation(codes)) for _ in range(_PERMUTATIONS)])
    observed, mean, variance = statistic(codes), float(null.mean()), float(null.var())
    if mean <= 0 or variance <= 0:
        return None
    stretches = 1 + int(np.count_nonzero(np.diff(codes)))
    p = _chi_square_tail(observed, mean, variance)
    in_place = _share_in_place(codes, len(classes))
    return LabelOrder(observed / mean, p, count, len(labels) / count, len(labels), len(classes), stretches, in_place)


def _share_in_place(codes: NDArray[np.int64], classes: int) -> float:
    middles = [float(np.median(np.flatnonzero(codes == code))) for code in range(classes)]
    order = np.argsort(middles)
    ordered = np.repeat(order, np.bincount(codes, minlength=classes)[order])
    return float(np.mean(ordered == codes))


def _windows(batch_sizes: Sequence[int], samples: int) -> NDArray[np.int64]:
    """The window of every sample: batches, joined until a window is large enough; what is left joins the last window."""
    sizes: list[int] = []
    size = 0
    for batch in batch_sizes:
        size += batch
        if size >= _SMALLEST_WINDOW:
            sizes.append(size)
            size = 0
    if size and sizes:
        sizes[-1] += size
    windows = np.repeat(np.arange(len(sizes)), sizes)[:samples]
    return windows if len(windows) == samples else np.zeros(samples, dtype=np.int64)


def _chi_square_tail(observed: float, mean: float, variance: float) -> float:
    """The chance of a value above `observed` for a scaled chi-square of this mean and variance (Wilson and Hilferty 1931).

    The tail of a distribution that was sampled 200 times cannot be counted, so its first two moments stand for it.
    """
    freedom = 2 * mean * mean / variance
    spread = 2 / (9 * freedom)
    deviation = ((observed / mean) ** (1 / 3) - (1 - spread)) / math.sqrt(spread)
    return 0.5 * math.erfc(deviation / math.sqrt(2))


def log10_chance_of_same_order(sequence: Sequence[Hashable]) -> float:
    """The decimal logarithm of the chance that a shuffle gives this very sequence again: 1 / (n! / product of counts!)."""
    orders = math.lgamma(len(sequence) + 1) - sum(math.lgamma(count + 1) for count in Counter(sequence).values())
    return -orders / math.log(10)


class Displacement(msgspec.Struct, frozen=True):
    """How far samples move from one epoch to the next: `ratio` of the mean distance to that of a full shuffle."""

    mean: float
    ratio: float
    p: float


def displacement(before: Sequence[int], after: Sequence[int]) -> Displacement | None:
    """Compare the places of the samples in two epochs; None unless both hold the same samples, each once.

    The sum of the distances is Spearman's footrule; its mean and variance under a random permutation are those of
    Diaconis and Graham (1977), and it is close to normal for the sizes that are asked about.
    """
    count = len(before)
    if count < 2 * _SMALLEST_WINDOW or len(set(before)) < count or set(before) != set(after) or len(after) != count:
        return None
    place = {sample: position for position, sample in enumerate(before)}
    moved = sum(abs(position - place[sample]) for position, sample in enumerate(after))
    expected = (count**2 - 1) / 3
    deviation = (moved - expected) / math.sqrt((count + 1) * (2 * count**2 + 7) / 45)
    return Displacement(moved / count, moved / expected, 0.5 * math.erfc(-deviation / math.sqrt(2)))


def neighbours_are_alike(values: NDArray[np.float64]) -> float:
    """The chance, under permutation, that consecutive values differ as little as they do."""
    values = values[:_MOST_LABELS]
    random = np.random.default_rng(_SEED)

    def statistic(order: NDArray[np.float64]) -> float:
        return float(np.abs(np.diff(order)).mean())

    null = np.array([statistic(random.permutation(values)) for _ in range(_PERMUTATIONS)])
    return float((1 + np.count_nonzero(null <= statistic(values))) / (1 + _PERMUTATIONS))
