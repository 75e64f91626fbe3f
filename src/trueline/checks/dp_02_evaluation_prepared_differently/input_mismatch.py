"""Tests of whether evaluation inputs were prepared in another way than training inputs: one function per kind of difference.

Each takes the pooled statistics of both sides and returns a `Mismatch` or None. They leave room for data that really differ:
another mix of classes, another domain, augmentation on the training side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import FieldStat
from trueline.views.inputs import Numbers, Pool

CHANCE = 1e-6
# Most features must agree before a difference is put down to preparation: data that differ do so in some features.
_MOST = 0.8
_MAJORITY = 0.6
_FACTOR = 10.0
_FACTOR_ONE_FEATURE = 100.0
_PICTURE_FACTOR = 3.0
_SHIFT = 5.0
# A steady trend moves the mean of the last fifth of a series by 2.1 deviations of what came before, of the last half by 3.5.
_SHIFT_OF_STANDARDISED = 3.5
_SHIFT_OF_FEW = 10.0
_FEWEST_SAMPLES = 8
_ENDS_APART = 0.05
_FEWEST_FLAT_PIXELS = 16


class Mismatch(msgspec.Struct, frozen=True):
    """`certain`: it cannot come from other data, so it counts even if another evaluation is prepared rightly."""

    summary: str
    detail: str
    values: dict[str, float | int | str]
    fix: str
    confidence: float
    certain: bool


class Sides(msgspec.Struct, frozen=True):
    """Both sides of a comparison. `by_hand`: no loader gave the evaluation inputs."""

    training: Pool
    evaluation: Pool
    training_stats: list[FieldStat]
    evaluation_stats: list[FieldStat]
    by_hand: bool


def layout(training: Sequence[FieldStat], evaluation: Sequence[FieldStat]) -> Mismatch | None:
    """Channels first on one side and last on the other."""
    one, other = {stat.shape[1:] for stat in training}, {stat.shape[1:] for stat in evaluation}
    if len(one) != 1 or len(other) != 1:
        return None
    ours, theirs = one.pop(), other.pop()
    if len(ours) != 3 or ours == theirs:
        return None
    if theirs in ((ours[1], ours[2], ours[0]), (ours[2], ours[0], ours[1])) and min(ours) <= 4:
        return Mismatch(
            "Evaluation pictures have another layout than training pictures",
            f"Shape {list(ours)} in training, {list(theirs)} in evaluation: the channels are on another axis.",
            {"training": str(ours), "evaluation": str(theirs)},
            "Permute the axes of the evaluation pictures as those of the training pictures.",
            0.9,
            certain=True,
        )
    return None


def ends(sides: Sides) -> Mismatch | None:
    """Both sides reach the same two ends in every batch, as pixels do, but those are other numbers on each side."""
    ours, theirs = _ends_of(sides.training_stats), _ends_of(sides.evaluation_stats)
    if ours is None or theirs is None or ours.shape != theirs.shape:
        return None
    width = ours[1] - ours[0]
    if not (width > 0).all() or not (theirs[1] > theirs[0]).all():
        return None
    apart = np.abs(theirs - ours).max(axis=0) / np.maximum(width, theirs[1] - theirs[0])
    if apart.min() < _ENDS_APART:
        return None
    factor = float(np.median((theirs[1] - theirs[0]) / width))
    return Mismatch(
        f"Evaluation inputs run from {theirs[0].min():.4g} to {theirs[1].max():.4g}, training inputs from {ours[0].min():.4g} to "
        f"{ours[1].max():.4g}",
        f"Every batch reaches both ends of its range exactly, on each side: pixels of one kind, scaled in two "
        f"ways (widths differ "
        f"by a factor of {factor:.4g}).",
        {"factor": factor, "training_low": float(ours[0].min()), "evaluation_low": float(theirs[0].min())},
        "Use one function for the preparation of both, with the same division and the same mean and deviation.",
        0.92,
        certain=True,
    )


def _ends_of(stats: Sequence[FieldStat]) -> NDArray[np.float64] | None:
    """Lows and highs, per channel of pictures or over all pixels of flat ones, when they are the same in every batch."""
    shape = stats[0].shape
    flat = len(shape) == 2 and len(stats[0].mean) >= _FEWEST_FLAT_PIXELS
    if not (len(shape) >= 4 or flat) or sum(stat.shape[0] for stat in stats) < 2 * _FEWEST_SAMPLES:
        return None
    lows, highs = np.array([stat.low for stat in stats]), np.array([stat.high for stat in stats])
    if flat:
        lows, highs = lows.min(axis=1, keepdims=True), highs.max(axis=1, keepdims=True)
    if not (np.isfinite(lows).all() and np.isfinite(highs).all()):
        return None
    tolerance = 1e-5 * (highs.max(axis=0) - lows.min(axis=0))
    same = (np.ptp(lows, axis=0) <= tolerance).all() and (np.ptp(highs, axis=0) <= tolerance).all()
    return np.array([lows[0], highs[0]]) if same else None


def _numbers(sides: Sides) -> tuple[Numbers, Numbers] | None:
    """Ratio of deviations and shift of means in deviations, of features that vary on the training side and are not flags."""
    ours, theirs = sides.training, sides.evaluation
    usable = np.isfinite(ours.mean) & np.isfinite(theirs.mean) & (ours.std > 0) & ~(_flags(ours) & _flags(theirs))
    if not usable.any():
        return None
    ratio = theirs.std[usable] / ours.std[usable]
    return ratio, (theirs.mean[usable] - ours.mean[usable]) / ours.std[usable]


def _flags(pool: Pool) -> NDArray[np.bool_]:
    """Features that hold zeros and ones only: their variance is mean (1 - mean)."""
    return np.asarray((pool.low >= 0) & (pool.high <= 1) & np.isclose(pool.std**2, pool.mean * (1 - pool.mean), atol=1e-6))


def factor(sides: Sides) -> Mismatch | None:
    """Nearly all features are spread ten times as far on one side: no other data do that."""
    numbers = _numbers(sides)
    if numbers is None or sides.evaluation.samples < _FEWEST_SAMPLES:
        return None
    ratio, _ = numbers
    middle = float(np.median(ratio))
    if middle <= 0:
        return None
    one = len(ratio) == 1 and not sides.training.is_picture
    enough = _FACTOR_ONE_FEATURE if one else _FACTOR
    larger = middle >= enough and bool(np.mean(ratio >= _PICTURE_FACTOR) >= _MOST)
    smaller = middle <= 1 / enough and bool(np.mean(ratio <= 1 / _PICTURE_FACTOR) >= _MOST)
    if smaller and sides.by_hand and not sides.training.is_picture:
        smaller = _is_division(sides, ratio)
    if not (larger or smaller):
        return None
    told = _known_factor(middle)
    return Mismatch(
        f"Evaluation inputs are {_times(middle)} the scale of training inputs{told}",
        f"Deviation of {np.median(sides.evaluation.std):.4g} in evaluation, "
        f"{np.median(sides.training.std):.4g} in training (median "
        f"over {len(ratio)} features).",
        {"factor": middle, "features": len(ratio), "samples": sides.evaluation.samples},
        "Prepare evaluation inputs as training inputs are: the same division, the same mean and deviation.",
        0.9,
        certain=True,
    )


def _is_division(sides: Sides, ratio: Numbers) -> bool:
    """Whether deviations and means are smaller by one factor. The states at the start of an episode are near each other too,
    but their means do not follow."""
    ours, theirs = sides.training, sides.evaluation
    off_zero = np.abs(ours.mean) > ours.std
    if len(ratio) < 3 or not (ratio > 0).all() or not off_zero.any():
        return False
    means = theirs.mean[off_zero] / ours.mean[off_zero]
    return bool((means > 0).all()) and float(np.ptp(np.log(np.concatenate([ratio, means])))) < math.log(2)


def _times(number: float) -> str:
    return f"{number:.3g} times" if number >= 1 else f"1/{1 / number:.3g} of"


def _known_factor(number: float) -> str:
    """What a factor may come from; pictures of two parts of a dataset differ in contrast by a few percent."""
    bytes_range = 255.0
    if abs(number / bytes_range - 1) < 0.2:
        return " (255: the division is missing)"
    if abs(number * bytes_range - 1) < 0.2:
        return " (1/255: divided in evaluation only)"
    return ""


def standardisation(sides: Sides) -> Mismatch | None:
    """Features were centred and scaled in training and are not in evaluation."""
    numbers = _numbers(sides)
    if numbers is None:
        return None
    ratio, shift = numbers
    if sides.training.is_picture:
        return _picture_range(sides, ratio)
    if len(ratio) < 2:
        return None
    usual = np.isfinite(sides.training.mean) & (sides.training.std > 0)
    centred = (np.abs(sides.training.mean[usual]) < 0.3) & (np.abs(sides.training.std[usual] - 1) < 0.3)
    standardised = bool(centred.mean() >= _MOST)
    if standardised and (spreads := _own_spreads(sides, ratio)) is not None:
        return spreads
    size = float(np.sqrt(np.mean(np.minimum(shift**2, 1e12))))
    if sides.evaluation.samples < _FEWEST_SAMPLES or len(sides.training.shape) > 2:
        enough, each = _SHIFT_OF_FEW, 3.0
    elif standardised:
        enough, each = _SHIFT_OF_STANDARDISED, 1.0
    else:
        enough, each = _SHIFT, 3.0
    if size < enough or np.mean(np.abs(shift) > each) < _MAJORITY:
        return None
    known = "standardised in training and not in evaluation" if standardised else "prepared in two ways"
    return Mismatch(
        f"The features are {known}: evaluation means lie {size:.3g} deviations from those of training",
        f"{np.mean(np.abs(shift) > each):.0%} of {len(shift)} features are off by more than {each:g} deviations, over "
        f"{sides.evaluation.samples} samples.",
        {"shift": size, "features": len(shift), "samples": sides.evaluation.samples},
        "Apply the scaler that was fitted on the training data to evaluation data as well (`scaler.transform`).",
        0.88 if standardised else 0.8,
        certain=False,
    )


def _own_spreads(sides: Sides, ratio: Numbers) -> Mismatch | None:
    """Training features have deviation 1, and most evaluation features another one, a factor of three off or more."""
    if len(ratio) < 3 or len(sides.training.shape) != 2 or sides.evaluation.samples < _FEWEST_SAMPLES:
        return None
    wider, narrower = ratio >= _PICTURE_FACTOR, ratio <= 1 / _PICTURE_FACTOR
    # States at the start of an episode are near each other in all features: by hand, some must be wider as well.
    if np.mean(wider | narrower) < _MAJORITY or (sides.by_hand and not wider.any()):
        return None
    return Mismatch(
        "The features are standardised in training and not in evaluation",
        f"{np.mean(wider | narrower):.0%} of {len(ratio)} features have a deviation {_PICTURE_FACTOR:g} times or more off that "
        f"of training (from {ratio.min():.3g} to {ratio.max():.3g} of it), over {sides.evaluation.samples} samples.",
        {"smallest": float(ratio.min()), "largest": float(ratio.max()), "samples": sides.evaluation.samples},
        "Apply the scaler that was fitted on the training data to evaluation data as well (`scaler.transform`).",
        0.88,
        certain=False,
    )


def _picture_range(sides: Sides, ratio: Numbers) -> Mismatch | None:
    """Pictures in [0, 1] on one side, standardised ones on the other."""
    ours, theirs = sides.training, sides.evaluation
    raw = [bool(np.nanmin(pool.low) >= 0 and np.nanmax(pool.high) <= 1) for pool in (ours, theirs)]
    negative = [bool(np.nanmin(pool.low) < -0.3) for pool in (ours, theirs)]
    crossed = (raw[0] and negative[1]) or (negative[0] and raw[1])
    far = (ratio >= _PICTURE_FACTOR).all() or (ratio <= 1 / _PICTURE_FACTOR).all()
    if not (crossed and far) or theirs.samples < _FEWEST_SAMPLES:
        return None
    where = "training" if raw[1] else "evaluation"
    return Mismatch(
        f"Pictures are standardised in {where} only",
        f"Range {np.nanmin(ours.low):.3g} … {np.nanmax(ours.high):.3g} in training, {np.nanmin(theirs.low):.3g} … "
        f"{np.nanmax(theirs.high):.3g} in evaluation; deviations differ by a factor of {np.median(ratio):.3g}.",
        {"factor": float(np.median(ratio)), "samples": theirs.samples},
        "Use the same mean and deviation in both preparations.",
        0.85,
        certain=False,
    )


def permuted(sides: Sides) -> Mismatch | None:
    """The features stand in another order: means and deviations fit only after moving them."""
    ours, theirs = sides.training, sides.evaluation
    count = len(ours.mean)
    if not 2 < count <= 512 or ours.calls < 4 or not (np.isfinite(ours.mean).all() and np.isfinite(theirs.mean).all()):
        return None
    # Batches of the training side differ by the noise of sampling; evaluation batches have it too.
    noise = ours.spread_of_means * math.sqrt(1 / ours.calls + max(1.0, ours.samples / ours.calls / theirs.samples))
    if not (noise > 0).all():
        return None
    distance = np.abs(theirs.mean[:, None] - ours.mean[None, :]) / np.maximum(noise[None, :], noise[:, None])
    place = distance.argmin(axis=1)
    moved = int(np.count_nonzero(place != np.arange(count)))
    best, stayed = distance[np.arange(count), place], np.diagonal(distance)
    # Normal tails: |z| > 6 has a chance of 2e-9 for one feature; a permutation needs two that have moved.
    if len(set(place.tolist())) < count or moved < 2 or best.max() > 4 or np.count_nonzero(stayed > 6) < 2:
        return None
    if (stayed[place != np.arange(count)] < 4).any():
        return None
    kind = "channels are reversed" if place.tolist() == list(range(count))[::-1] else f"{moved} features have changed places"
    return Mismatch(
        f"The {kind} in evaluation",
        f"Each mean of an evaluation feature fits a training feature within {best.max():.2g} standard errors, "
        f"but {moved} of them "
        f"another one than that at their place (up to {stayed.max():.3g} standard errors off).",
        {"moved": moved, "order": str(place.tolist()[:32]), "fit": float(best.max()), "misfit": float(stayed.max())},
        "Bring the features of evaluation inputs into the order of training (for pictures, convert BGR to RGB on both sides).",
        0.85,
        certain=True,
    )


def refitted(sides: Sides) -> Mismatch | None:
    """Evaluation data standardised by their own mean and deviation: exactly 0 and 1, which no shared scaler gives."""
    ours, theirs = sides.training, sides.evaluation
    if len(ours.shape) != 2 or theirs.calls > 1 or theirs.samples < 4 * _FEWEST_SAMPLES or len(theirs.mean) < 3:
        return None
    varying = theirs.std > 0
    if np.count_nonzero(varying) < 3 or not np.isfinite(theirs.mean).all():
        return None
    mean, std = theirs.mean[varying], theirs.std[varying]
    if np.abs(std - 1).max() > 1 / theirs.samples + 1e-4:
        return None
    # A mean is off by about one standard error: the chance of one this close to 0. Features depend on each other: count three.
    chance = min(1.0, 0.8 * math.sqrt(theirs.samples) * float(np.abs(mean).max()) + 1e-9) ** 3
    itself = [float(np.abs(np.array(stat.mean)[varying]).max()) * math.sqrt(stat.count) < 1e-2 for stat in sides.training_stats]
    roughly = np.mean((np.abs(ours.mean) < 0.5) & (np.abs(ours.std - 1) < 0.5)) >= _MOST
    if chance >= CHANCE or not roughly or (all(itself) and len(itself) > 1):
        return None
    return Mismatch(
        "Evaluation data are standardised by their own mean and deviation instead of those of the training data",
        f"Over the {theirs.samples} evaluation samples all {len(mean)} features have mean 0 (largest "
        f"{np.abs(mean).max():.1g}) and "
        f"deviation 1: by a scaler of the training data with a chance below {max(chance, 1e-12):.1g}.",
        {"samples": theirs.samples, "features": len(mean), "largest_mean": float(np.abs(mean).max()), "p": chance},
        "Fit the scaler on the training data once, and only `transform` evaluation data with it.",
        0.75,
        certain=True,
    )
