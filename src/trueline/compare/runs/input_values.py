"""What enters two models: the same values, or other ones than chance between batches explains."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trueline.compare.runs.difference import Difference
from trueline.model import FieldStat, Location
from trueline.store import Run

FIRST_BATCHES = 8
# How far means and spreads may be apart, in standard errors.
_ERRORS = 6.0
# Means of single features: from so many batches on, by so much of their spread, and for such a share of the features.
_FEWEST_LOOKS = 4
_OFF = 0.3
_MANY = 0.1
# A scale of the same samples that is the same in all batches to this, and off by that; and their shift, in deviations.
_STEADY = 1e-4
_LITTLE = 2e-4
# What means of float32 values may be off by.
_ROUNDED = 1e-5


def value_difference(mine: Run, reference: Run, line: Location | None, *, same_samples: bool) -> Difference | None:
    """Whether what enters the model has another mean or spread than noise between batches explains. `same_samples`: the first
    batches hold the same samples on both sides. `line`: that of the inputs."""
    own, expected = list(input_looks(mine))[:FIRST_BATCHES], list(input_looks(reference))[:FIRST_BATCHES]
    if len(own) < 2 or len(expected) < 2 or "float" not in own[0].dtype or "float" not in expected[0].dtype:
        return None
    (mean_a, std_a, error_a), (mean_b, std_b, error_b) = _moments(own), _moments(expected)
    spread = max(std_b, 1e-12)
    apart = abs(mean_a - mean_b) / spread
    ratio = abs(math.log(max(std_a, 1e-12) / spread))
    noise = (error_a + error_b) / spread
    if apart <= max(_ERRORS * noise, 0.03) and ratio <= max(_ERRORS * noise, 0.03):
        words = _other_features(own, expected) or (_scaled_a_little(own, expected) if same_samples else None)
        return None if words is None else Difference(
            "data", "values", "other", "", "data", "dp.01",
            f"As a whole the inputs are scaled alike, but not exactly: {words}.",
            "Normalise the inputs as the reference does: over the same axis, with the same mean and std.", None, None,
            line, -1, hidden=True,
        )  # fmt: skip
    scale = std_a / spread
    return Difference(
        "data", "values", {"mean": mean_a, "std": std_a}, {"mean": mean_b, "std": std_b}, "data", "dp.01",
        f"The inputs are scaled otherwise: mean {mean_a:.4g} and std {std_a:.4g}, in the reference mean {mean_b:.4g} and std "
        f"{std_b:.4g}; so mine are about {scale:.4g} times the reference's plus {mean_a - scale * mean_b:.4g}.",
        "Normalise the inputs with the reference's mean and std.", None, None, line, -1, hidden=True,
    )  # fmt: skip


def _other_features(mine: list[FieldStat], reference: list[FieldStat]) -> str | None:
    """The feature whose mean is furthest off, where that of many is further off than chance and scatter of batches explain."""
    sides = [mine, reference]
    lengths = {len(look.mean) for looks in sides for look in looks}
    if min(map(len, sides)) < _FEWEST_LOOKS or len(lengths) != 1 or lengths == {1}:
        return None
    means = [np.array([look.mean for look in looks], dtype=np.float64) for looks in sides]
    spreads = [np.sqrt(np.mean(np.square([look.std for look in looks]), axis=0)) for looks in sides]
    scatter = sum(each.std(axis=0) / math.sqrt(len(each)) for each in means)
    by_chance = sum(spread / math.sqrt(sum(look.count for look in looks)) for spread, looks in zip(spreads, sides, strict=True))
    apart = np.abs(means[0].mean(axis=0) - means[1].mean(axis=0))
    spread = np.maximum(spreads[0], spreads[1])
    off = apart > np.maximum(_ERRORS * np.maximum(scatter, by_chance), _OFF * spread)
    if np.count_nonzero(off) < max(1.0, _MANY * off.size):
        return None
    worst = int(np.argmax(np.where(off, apart / np.maximum(spread, 1e-12), -1.0)))
    a, b = (float(each.mean(axis=0)[worst]) for each in means)
    return (
        f"feature {worst} has mean {a:.4g} and std {spreads[0][worst]:.4g}, in the reference {b:.4g} and {spreads[1][worst]:.4g} "
        f"({np.count_nonzero(off)} of {off.size} features differ)"
    )


class _Scales(NamedTuple):
    """Feature by feature: what the deviations of mine are of the reference's, what is then added, in the reference's deviations,
    and how far both scatter between batches."""

    scale: NDArray[np.float64]
    shift: NDArray[np.float64]
    scatter: NDArray[np.float64]
    # How far rounding may move the shift.
    rounding: NDArray[np.float64]


def _scales(mine: list[FieldStat], reference: list[FieldStat]) -> _Scales | None:
    """From one look per batch; None where there are too few, or of other shapes."""
    looks = list(zip(mine, reference, strict=False))
    if len(looks) < _FEWEST_LOOKS or any(a.shape != b.shape or len(a.std) != len(b.std) for a, b in looks):
        return None
    own, expected = (np.array([(look.mean, look.std) for look in side], dtype=np.float64) for side in zip(*looks, strict=True))
    alive = (np.minimum(own[:, 1], expected[:, 1]) > 1e-6).all(axis=0)
    own, expected = own[:, :, alive], expected[:, :, alive]
    ratios = own[:, 1] / expected[:, 1]
    scale = ratios.mean(axis=0)
    spread = expected[:, 1].mean(axis=0)
    shifts = (own[:, 0] - scale * expected[:, 0]) / spread
    return _Scales(
        scale, shifts.mean(axis=0), np.maximum(ratios.std(axis=0), shifts.std(axis=0)),
        _ROUNDED * np.abs(expected[:, 0]).max(axis=0) / spread,
    )  # fmt: skip


def same_but_for_scales(mine: list[FieldStat], reference: list[FieldStat]) -> bool:
    """Whether the batches hold the same samples, each feature scaled and shifted in its own way: other samples have other
    deviations and means in every batch."""
    found = _scales(mine[:FIRST_BATCHES], reference[:FIRST_BATCHES])
    return found is not None and bool(found.scale.size) and bool((found.scatter < _STEADY).all())


def _scaled_a_little(mine: list[FieldStat], reference: list[FieldStat]) -> str | None:
    """By how much the same samples are scaled or shifted otherwise, where that is the same in all batches: random changes are
    not."""
    found = _scales(mine, reference)
    if found is None or not found.scale.size:
        return None
    apart = np.maximum(np.abs(found.scale - 1), np.maximum(np.abs(found.shift) - found.rounding, 0.0))
    off = (found.scatter < _STEADY) & (apart > np.maximum(_LITTLE, 10 * found.scatter))
    if np.count_nonzero(off) < _MANY * off.size:
        return None
    worst = int(np.argmax(np.where(off, apart, -1.0)))
    return (
        f"the same samples have {found.scale[worst]:.6g} times the reference's std in every batch, and a mean that is "
        f"{found.shift[worst]:.2g} std beside ({np.count_nonzero(off)} of {off.size} features differ)"
    )


def _moments(looks: list[FieldStat]) -> tuple[float, float, float]:
    """Mean and deviation over batches, and the standard error of the mean as it scatters between them."""
    weights = np.array([look.count * len(look.mean) for look in looks], dtype=np.float64)
    means = np.array([np.nanmean(look.mean) for look in looks])
    squares = np.array([np.nanmean(np.square(look.std) + np.square(look.mean)) for look in looks])
    mean = float(np.average(means, weights=weights))
    std = math.sqrt(max(float(np.average(squares, weights=weights)) - mean * mean, 0.0))
    return mean, std, float(means.std() / math.sqrt(len(looks)))


def input_looks(run: Run) -> Iterator[FieldStat]:
    """The first input of training calls, as it entered the model."""
    training = {call.seq for call in run.root_calls if call.grad and not call.loss}
    return (stat for stat in run.field_stats if stat.owner == "call" and stat.field == "0" and stat.seq in training)
