"""The ends of a stream of values, exact and in little memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from trueline.datasets.hashing import Hashes

_ENDS = 8
_MOST_DISTINCT = 1024
_ALL_HASHES = 2.0**64


class Lowest:
    """The lowest distinct values of a stream with exact counts: a value among the lowest of all was among the lowest of those
    seen with it, so it was never dropped."""

    def __init__(self, keep: int = _ENDS) -> None:
        self._keep = keep
        self.counts: dict[Any, int] = {}
        self.full = False
        self._bound: Any = None

    def add(self, values: npt.NDArray[Any]) -> list[Any]:
        """Gives the values that are new."""
        if self.full:
            values = values[values <= self._bound]
        if not len(values):
            return []
        distinct, counts = np.unique(values, return_counts=True)
        cut = len(distinct) > self._keep
        new = []
        for value, count in zip(distinct[: self._keep].tolist(), counts[: self._keep].tolist(), strict=True):
            if value not in self.counts:
                new.append(value)
            self.counts[value] = self.counts.get(value, 0) + count
        if cut or len(self.counts) > self._keep:
            self.counts = {value: self.counts[value] for value in sorted(self.counts)[: self._keep]}
            self.full = True
            self._bound = values.dtype.type(next(reversed(self.counts)))
        return new

    def ordered(self) -> list[tuple[float, int]]:
        return sorted(self.counts.items())


class Ends:
    """The distinct values next to both ends of a column of numbers, with their counts."""

    def __init__(self) -> None:
        self._low, self._high = Lowest(), Lowest()

    def add(self, values: npt.NDArray[np.float64]) -> None:
        self._low.add(values)
        self._high.add(-values)

    @property
    def lows(self) -> list[tuple[float, int]]:
        return self._low.ordered()

    @property
    def highs(self) -> list[tuple[float, int]]:
        return [(-value, count) for value, count in self._high.ordered()]


class Distinct:
    """How many different values a column has, and the counts of each as long as they are few.

    It keeps the values with the lowest hashes: a random draw of the distinct values, whatever their frequencies. How
    densely they lie tells how many there are, within 3 % or so (k minimum values).
    """

    def __init__(self) -> None:
        self._lowest = Lowest(_MOST_DISTINCT)
        self._names: dict[int, str] = {}

    def add(self, hashes: Hashes, name_of: Callable[[int], str]) -> None:
        """`name_of` gives the value at a place, in words."""
        for new in self._lowest.add(hashes):
            if not self.overflowed:
                self._names[new] = name_of(int(np.argmax(hashes == np.uint64(new))))

    @property
    def overflowed(self) -> bool:
        return self._lowest.full

    @property
    def estimate(self) -> int:
        if not self.overflowed:
            return len(self._lowest.counts)
        return round((_MOST_DISTINCT - 1) / (float(max(self._lowest.counts)) / _ALL_HASHES))

    @property
    def usual_count(self) -> float:
        """How often a value of this column repeats (median)."""
        return float(np.median(list(self._lowest.counts.values()))) if self._lowest.counts else 0.0

    def counts(self) -> dict[int, tuple[str, int]]:
        """Name and count by hash; only as long as not overflowed."""
        return {value: (self._names.get(value, "?"), count) for value, count in self._lowest.counts.items()}
