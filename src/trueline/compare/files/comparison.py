"""Two checkpoints, files or folders of tensors: pair them, measure every pair, and say what is left over."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.compare.files.parameters import Candidate, Pair, Pairing, pair_parameters
from trueline.compare.files.tensors import Difference, measure, measure_arrays, tolerance_of
from trueline.errors import TruelineError
from trueline.tensorfiles import TensorEntry, TensorSource
from trueline.tensorfiles.number_formats import number_format

# Statistics are dumped with about so many digits, whatever the type of the tensor.
_STATISTICS_TOLERANCE = 1e-5


class TensorPair(msgspec.Struct):
    """One tensor on both sides. `difference` is None where only statistics were dumped; then `statistics` holds the largest
    relative difference of each. `problem` says why it could not be measured."""

    pair: Pair
    shape: tuple[int, ...]
    dtype: str
    reference_shape: tuple[int, ...]
    reference_dtype: str
    tolerance: float
    difference: Difference | None = None
    statistics: dict[str, float] | None = None
    problem: str | None = None

    @property
    def equal(self) -> bool:
        """Whether the two are equal within the tolerance."""
        if self.difference is not None:
            return self.difference.within(self.tolerance)
        return self.statistics is not None and all(each <= _STATISTICS_TOLERANCE for each in self.statistics.values())

    @property
    def distance(self) -> float:
        """By how much to put the worst first."""
        if self.difference is None:
            return math.inf if self.statistics is None else max(self.statistics.values(), default=0.0)
        return math.inf if self.difference.nonfinite_differing else self.difference.relative_l2


class FileComparison(msgspec.Struct):
    """Both sides, their pairs, and what has no counterpart. `same_training` is said of two checkpoints with the same names:
    then what differs is what changed between them."""

    mine: str
    reference: str
    kinds: tuple[str, str]
    units: float
    pairs: list[TensorPair]
    pairing: Pairing
    problems: list[str]
    other_tensors: tuple[int, int]
    same_training: bool

    @property
    def unmatched(self) -> int:
        return len(self.pairing.unmatched_mine) + len(self.pairing.unmatched_reference)

    @property
    def different(self) -> list[TensorPair]:
        """The pairs that are not equal, the worst first."""
        return sorted((each for each in self.pairs if not each.equal), key=lambda each: -each.distance)

    @property
    def equal(self) -> bool:
        """All was read, all has a counterpart, and all counterparts are equal within the tolerance."""
        return bool(self.pairs) and not (self.different or self.unmatched or self.problems)


def compare_sources(
    mine: TensorSource,
    reference: TensorSource,
    *,
    fixed: dict[str, str] | None = None,
    units: float = 16.0,
    every: bool = False,
    progress: Callable[[int], None] | None = None,
) -> FileComparison:
    """Compare two sides. `units` is the tolerance in units of the rounding of the coarser type; with `every`, what lies
    beside the models in their checkpoints is compared too. `progress` is told the bytes of each pair."""
    entries = tuple(
        {entry.name: entry for entry in (each.entries if every else each.model_entries)} for each in (mine, reference)
    )
    full = (_same, _same) if every else (mine.full_name, reference.full_name)
    checkpoints = all("checkpoint" in each.kind or each.kind == "safetensors" for each in (mine, reference))
    candidates = [
        [_candidate(each, place, partial(source.read, name(each.name))) for place, each in enumerate(side.values())]
        for side, source, name in zip(entries, (mine, reference), full, strict=True)
    ]
    pairing = pair_parameters(candidates[0], candidates[1], fixed, every=every or not checkpoints)
    pairs = []
    for pair in pairing.pairs:
        one, other = entries[0][pair.mine], entries[1][pair.reference]
        pairs.append(_measured(mine, reference, pair, (one, other), (full[0](one.name), full[1](other.name)), units))
        if progress is not None:
            progress(one.bytes + other.bytes)
    return FileComparison(
        str(mine.path),
        str(reference.path),
        (mine.kind, reference.kind),
        units,
        pairs,
        pairing,
        mine.problems + reference.problems,
        (len(mine.entries) - len(entries[0]), len(reference.entries) - len(entries[1])),
        checkpoints and entries[0].keys() == entries[1].keys(),
    )


def _candidate(entry: TensorEntry, place: int, read: Callable[[], NDArray[Any]]) -> Candidate:
    return Candidate(entry.name, entry.shape, entry.dtype, place, None if entry.statistics is not None else read)


def _measured(
    mine: TensorSource,
    reference: TensorSource,
    pair: Pair,
    entries: tuple[TensorEntry, TensorEntry],
    names: tuple[str, str],
    units: float,
) -> TensorPair:
    one, other = entries
    found = TensorPair(pair, one.shape, one.dtype, other.shape, other.dtype, 0.0)
    if one.statistics is not None and other.statistics is not None:
        found.statistics = _statistics_apart(one.statistics, other.statistics) or None
        if found.statistics is None:
            found.problem = "No statistic was dumped on both sides."
        return found
    try:
        epsilons = [number_format(entry.dtype).epsilon for entry in entries]
        found.tolerance = tolerance_of(units, *epsilons)
        ours, theirs = mine.stored(names[0]), reference.stored(names[1])
        if pair.layout == "transposed":
            found.difference = measure_arrays(ours.whole(), np.transpose(theirs.whole()))
        else:
            found.difference = measure(ours, theirs)
    except TruelineError as problem:
        found.problem = str(problem)
    return found


def _statistics_apart(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """The relative difference of each statistic, by the largest of all: a mean of nearly 0 is no scale of its own."""
    keys = one.keys() & other.keys()
    scale = max((abs(value) for side in (one, other) for value in side.values() if math.isfinite(value)), default=0.0)
    return {key: _apart(one[key], other[key], scale) for key in sorted(keys)}


def _apart(one: float, other: float, scale: float) -> float:
    if one == other or (math.isnan(one) and math.isnan(other)):
        return 0.0
    return abs(one - other) / scale if math.isfinite(one) and math.isfinite(other) and scale else math.inf


def _same(name: str) -> str:
    return name
