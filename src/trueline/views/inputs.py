"""What entered the models of a run, in training and in evaluation, as far as it was looked at."""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec
import numpy as np
from numpy.typing import NDArray

from trueline.model import Batch, Event, FieldStat, Location, RootCall
from trueline.store import Run
from trueline.views.calls import CallRoles

Numbers = NDArray[np.float64]


class Pool(msgspec.Struct, frozen=True):
    """One field over several calls: ranges and moments feature by feature. `samples` counts rows, `values` values per
    feature. `spread_of_means` is the standard deviation of the calls' means, which has the noise of sampling in it."""

    calls: int
    samples: int
    values: int
    shape: tuple[int, ...]
    dtype: str
    axis: int | None
    low: Numbers
    high: Numbers
    mean: Numbers
    std: Numbers
    spread_of_means: Numbers

    @property
    def is_picture(self) -> bool:
        return len(self.shape) >= 4

    @property
    def is_float(self) -> bool:
        return "float" in self.dtype

    @property
    def square(self) -> Numbers:
        """The second moment of every feature."""
        return self.mean**2 + self.std**2


def is_mask(stats: Sequence[FieldStat]) -> bool:
    """Whether a field holds nothing but whole zeros and ones: it tells where something is."""
    whole = all("float" not in stat.dtype for stat in stats)
    return whole and all(0 <= value <= 1 for stat in stats for value in (*stat.low, *stat.high))


def has_no_scale(stats: Sequence[FieldStat]) -> bool:
    """Whether a field is a mask, or has one whole number per sample: a label, a length, a count."""
    per_sample = all(len(stat.shape) < 2 and "float" not in stat.dtype for stat in stats)
    return per_sample or is_mask(stats)


def pooled(stats: Sequence[FieldStat]) -> Pool:
    """Join the statistics of calls that have the same features; features without any finite value are NaN."""
    counts = np.array([stat.count for stat in stats], dtype=np.float64)[:, None]
    means, stds = np.array([stat.mean for stat in stats]), np.array([stat.std for stat in stats])
    known = np.isfinite(means)
    weights = counts * known
    total = np.maximum(weights.sum(axis=0), 1)
    filled = np.where(known, means, 0.0)
    mean = (weights * filled).sum(axis=0) / total
    variance = (weights * (np.where(known, stds, 0.0) ** 2 + (filled - mean) ** 2)).sum(axis=0) / total
    some = known.any(axis=0)
    first = stats[0]
    return Pool(
        len(stats),
        sum(stat.shape[0] for stat in stats),
        int(counts.sum()),
        first.shape,
        first.dtype,
        first.axis,
        np.where(some, np.where(known, [stat.low for stat in stats], np.inf).min(axis=0), np.nan),
        np.where(some, np.where(known, [stat.high for stat in stats], -np.inf).max(axis=0), np.nan),
        np.where(some, mean, np.nan),
        np.where(some, np.sqrt(variance), np.nan),
        np.where(some, np.sqrt((weights * (filled - mean) ** 2).sum(axis=0) / total), np.nan),
    )


def by_features(stats: Iterable[FieldStat]) -> list[list[FieldStat]]:
    """Sort statistics of one field into groups with the same features, the largest group first."""
    groups: dict[tuple[int, int | None, int], list[FieldStat]] = defaultdict(list)
    for stat in stats:
        groups[len(stat.shape), stat.axis, len(stat.mean)].append(stat)
    return sorted(groups.values(), key=len, reverse=True)


class ModelInputs:
    """The root calls that were looked at, sorted into training and evaluation, with what they were given."""

    def __init__(self, run: Run) -> None:
        self.run = run
        self.roles = CallRoles(run)
        self.stats: dict[int, list[FieldStat]] = defaultdict(list)
        for stat in run.field_stats:
            if stat.owner == "call":
                self.stats[stat.seq].append(stat)

    @cached_property
    def evaluating(self) -> set[int]:
        """The seqs of calls that evaluate a model that is trained."""
        return {
            call.seq for family in self.roles.training for stretch in self.roles.evaluations(family) for call in stretch.calls
        }

    @cached_property
    def _backwards(self) -> list[Event]:
        return self.run.events_of("backward")

    @cached_property
    def _backward_seqs(self) -> list[int]:
        return [event.seq for event in self._backwards]

    def backward_after(self, call: RootCall) -> Event | None:
        """The backward pass that came next, if it was in the same step."""
        place = bisect_right(self._backward_seqs, call.seq)
        if place == len(self._backwards) or self._backwards[place].step != call.step:
            return None
        return self._backwards[place]

    def is_training(self, call: RootCall) -> bool:
        return call.grad and call.seq not in self.evaluating and self.backward_after(call) is not None

    @cached_property
    def training(self) -> list[RootCall]:
        """Training calls of models with parameters that were looked at, in the order in which they happened."""
        roots = {parameter.root for parameter in self.run.parameters.values() if not parameter.buffer}
        return [
            call
            for call in self.roles.calls
            if call.seq in self.stats and self.run.modules[call.module].root in roots and self.is_training(call)
        ]

    @cached_property
    def evaluation(self) -> list[RootCall]:
        return [call for call in self.roles.calls if call.seq in self.stats and call.seq in self.evaluating]

    def batch(self, call: RootCall) -> Batch | None:
        return None if call.batch is None else self.roles.batches.get(call.batch)

    def source_line(self, call: RootCall) -> Location | None:
        """The line to show for what a call was fed with: where its data is prepared, its loader built, or the call."""
        loader = self.roles.loader_of(call)
        built = self.run.loaders[loader].line_of("Map") if loader in self.run.loaders else None
        return built or call.location

    def fields(self, calls: Iterable[RootCall]) -> dict[tuple[int, str], list[tuple[RootCall, FieldStat]]]:
        """By module and position of the input: the calls and what they were given there."""
        found: dict[tuple[int, str], list[tuple[RootCall, FieldStat]]] = defaultdict(list)
        for call in calls:
            for stat in self.stats.get(call.seq, ()):
                found[call.module, stat.field].append((call, stat))
        return dict(found)
