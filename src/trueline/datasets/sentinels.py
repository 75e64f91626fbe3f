"""Numbers that stand for "no value": -999, 9999, 999.9, 2147483647 …, found by where they stand and how often they come.

A sentinel is an exact value that repeats, at an end of the column's range, further away from all other values than those are
spread. Not every such value is one: prices have a dearest item, cities a largest. So four things are asked of it:

- *The tail test.* Under the null, the distribution does not rise towards its end. Then none of the c values beyond the rest
  is more likely to fall on the last place of the grid than on any other of the g places of the gap, and the others all fall
  where the first did with a chance of at most g^-(c-1). It must be below 1e-6.
- *Not the next of a series.* In 1, 2, 5, 10, 20, 50, 100 the last gap is like those before it: the gap must be four times the
  widest among the others, and on a logarithmic scale three times their median, and off their grid if they have one.
- *Written like one*, that is all nines, 97 or 98, the limits of a number type, a large power of ten. Another round number
  (two digits and zeros, as -200) must be more than it takes: three times the spread of the others (or negative where none of them
  is), ten times as frequent as they are, and less than half of all rows, because what is most frequent is the background.
  What is not round was measured: the income of one customer in every row that a join has made of it.
- *Never zero*: counts and amounts are zero in earnest.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

CHANCE = 1e-6
_FARTHER_THAN_WIDEST = 4.0
_FARTHER_THAN_MEDIAN = 3.0
_OFF_GRID = 0.01
_MOST_PER_SIDE = 3
_FEWEST_OTHERS = 3
_FEWEST_OTHERS_UNWRITTEN = 10
_FARTHER_UNWRITTEN = 3.0
_FEWEST_UNWRITTEN = 5
_MORE_FREQUENT = 10.0
_LARGEST_SHARE = 0.5
_NINES = re.compile(r"^(9{2,}|9*[78]|7{2,}|8{2,})$")
_LIMITS = {
    float(value)
    for bits in (8, 16, 32, 64)
    for value in (2**bits - 1, 2 ** (bits - 1) - 1, -(2 ** (bits - 1)), -(2 ** (bits - 1)) + 1)
} | {float(np.finfo(kind).max) * sign for kind in (np.float16, np.float32, np.float64) for sign in (1, -1)}
# The value that netCDF files are filled with.
_FILLED = 9.969209968386869e36

Counted = tuple[float, int]


class Sentinel(msgspec.Struct, frozen=True):
    """`low` and `high` are the range of the other values; `chance` is the bound of the tail test."""

    value: float
    count: int
    low: float
    high: float
    chance: float


def find_sentinels(
    lows: Sequence[Counted], highs: Sequence[Counted], sample: npt.NDArray[Any], total: int, usual_count: float
) -> list[Sentinel]:
    """`lows` and `highs` are the distinct values next to both ends with their counts, from the end inwards, `sample` some of all
    finite values, `total` how many these are, `usual_count` how often the values of the column repeat (median)."""
    best: list[Sentinel] = []
    distinct = np.unique(sample)
    for low_count in range(min(_MOST_PER_SIDE, len(lows) - 1) + 1):
        for high_count in range(min(_MOST_PER_SIDE, len(highs) - 1) + 1):
            if low_count + high_count <= len(best):
                continue
            apart = [*lows[:low_count], *highs[:high_count]]
            low, high = lows[low_count][0], highs[high_count][0]
            others = _others(distinct, lows, highs, low, high)
            if len(others) < _FEWEST_OTHERS or any(low <= value <= high for value, _ in apart):
                continue
            alone = low_count <= 1 and high_count <= 1
            found = [_judged(value, count, others, total, usual_count, alone=alone) for value, count in apart]
            if all(each is not None for each in found):
                best = [each for each in found if each is not None]
    return best


def is_written_like_one(value: float) -> bool:
    """Whether people and programs write this number where there is none."""
    if value in _LIMITS or math.isclose(abs(value), _FILLED, rel_tol=1e-6):
        return True
    size = abs(value)
    if size >= 1e6 and math.isclose(math.log10(size), round(math.log10(size)), abs_tol=1e-12):
        return True
    digits = f"{size:.10g}"
    if "." in digits:
        return len(digits) > 3 and set(digits) == {"9", "."}
    return _NINES.match(digits) is not None and len(digits) > 1


def _is_round(value: float) -> bool:
    return value == int(value) and len(f"{abs(value):.0f}".rstrip("0")) <= 2


def _others(
    distinct: npt.NDArray[Any], lows: Sequence[Counted], highs: Sequence[Counted], low: float, high: float
) -> npt.NDArray[np.float64]:
    """The distinct values between `low` and `high`: those of the sample, and those known at the ends."""
    known = np.array([value for value, _ in (*lows, *highs)])
    together = np.union1d(distinct, known)
    return together[(together >= low) & (together <= high)].astype(np.float64)


def _judged(
    value: float, count: int, others: npt.NDArray[np.float64], total: int, usual_count: float, *, alone: bool
) -> Sentinel | None:
    low, high = float(others[0]), float(others[-1])
    # Halves: the difference of the two largest floats is not a float.
    gap = (low / 2 - value / 2 if value < low else value / 2 - high / 2) * 2
    spread = (high / 2 - low / 2) * 2
    if value == 0 or not gap > spread > 0:
        return None
    steps = np.diff(others)
    if gap < _FARTHER_THAN_WIDEST * float(steps.max()) or _continues_a_series(value, others):
        return None
    places = gap / float(steps.min())
    chance = 10 ** max(-300.0, -(count - 1) * math.log10(max(places, 1.0)))
    if not chance < CHANCE:
        return None
    if not is_written_like_one(value):
        if not _is_round(value):
            return None
        far = gap > _FARTHER_UNWRITTEN * spread or (value < 0 <= low)
        frequent = count >= max(_FEWEST_UNWRITTEN, _MORE_FREQUENT * usual_count) and count < _LARGEST_SHARE * total
        if not (alone and far and frequent and len(others) >= _FEWEST_OTHERS_UNWRITTEN):
            return None
    return Sentinel(value, count, low, high, chance)


def _continues_a_series(value: float, others: npt.NDArray[np.float64]) -> bool:
    """Whether the value is, on a logarithmic scale, the next after others of its sign, as 64 is after 8, 16 and 32."""
    same = np.log(np.abs(others[np.sign(others) == math.copysign(1, value)]))
    if len(same) < 3:
        return False
    same.sort()
    place = math.log(abs(value))
    gap = place - same[-1] if place > same[-1] else same[0] - place
    steps = np.diff(same)
    if gap < _FARTHER_THAN_MEDIAN * float(np.median(steps)):
        return True
    # All of them powers of one number, some of which did not occur: so is the value, then.
    multiples = np.append(steps, gap) / steps.min()
    return bool((np.abs(multiples - np.round(multiples)) < _OFF_GRID).all())
