"""Stand-ins for missing values: one exact value, repeated, far outside of the range of its feature."""

from __future__ import annotations

import math
from typing import Any

import msgspec

from trueline.model import FieldStat, Location, RootCall
from trueline.store import Run
from trueline.views.dataflow import plain
from trueline.views.first_layers import FirstLayers
from trueline.views.inputs import ModelInputs

CHANCE = 1e-6
_USUAL_CODES = {
    -1.0, -9.0, -99.0, -200.0, -999.0, -9999.0, -99999.0, -999999.0, 99.0, 999.0, 9999.0, 99999.0, 999999.0, -32768.0, 32767.0,
    65535.0, 1e6, -1e6, 1e9, -1e9, 1e10, -1e10, 1e20, -1e20, 1e30, -1e30, 2147483647.0, -2147483648.0,
}  # fmt: skip
# How far a value must be from the others, in spreads of those.
_FAR = 2.0
_FAR_FOR_CODES = 1.0
_MOST = 0.5
_FEWEST = 3
# Datasets have a few equal rows; samplers that draw with replacement give many.
_MOST_TWINS = 0.05
# Operations that look for certain values: a model that uses them on its input knows of the stand-in.
_LOOKS_FOR = frozenset("eq ne isnan isfinite isclose lt gt le ge where masked_fill nan_to_num masked_select".split())


class StandIn(msgspec.Struct, frozen=True):
    name: str
    value: float
    count: int
    of: int
    low: float
    high: float
    gap: float
    repeats: float
    p: float
    location: Location | None

    @property
    def share(self) -> float:
        return self.count / self.of

    @property
    def is_usual_code(self) -> bool:
        return is_usual_code(self.value)


class Looked(msgspec.Struct, frozen=True):
    """What was found. `handled` tells of stand-ins that the script takes care of; `smallest` is the number of equal values
    that would have been enough in continuous data."""

    found: list[StandIn]
    samples: int
    smallest: int
    handled: str


def is_usual_code(value: float) -> bool:
    return any(math.isclose(value, code, rel_tol=1e-6) for code in _USUAL_CODES)


def stand_ins(run: Run, inputs: ModelInputs) -> Looked:
    layers = FirstLayers(run)
    found: list[StandIn] = []
    handled, samples = "", 0
    for (module, field), seen in inputs.fields(inputs.training).items():
        fresh = _fresh(inputs, seen)
        samples = max(samples, sum(stat.shape[0] for _, stat in fresh))
        here = _search(fresh, f"input {field!r}", inputs.source_line(seen[0][0]))
        if here and (_is_looked_for(layers, seen[0][1], module) or _has_mask(inputs, seen[0])):
            handled = (
                f"{here[0].name} holds {here[0].value:g} where values are missing; the model compares with it or gets a mask."
            )
        else:
            found.extend(here)
    for field, target in _targets(run, inputs).items():
        here = _search(target, f"target {field!r}", inputs.source_line(target[0][0]))
        if here and any(plain(op.name) in _LOOKS_FOR and op.settings.get("fed") for op in run.ops):
            handled = f"{here[0].name} holds {here[0].value:g} where values are missing; the script compares with it."
        else:
            found.extend(here)
    found.sort(key=lambda one: (not one.is_usual_code, one.p, -one.count))
    return Looked(found, samples, _smallest(samples), handled)


def _smallest(samples: int) -> int:
    """How many equal values have a chance below the threshold where no other value repeats."""
    return max(_FEWEST, 3 + math.floor(-math.log(CHANCE) / math.log(max(samples, 1) + 1)))


def _fresh(inputs: ModelInputs, seen: list[tuple[RootCall, FieldStat]]) -> list[tuple[RootCall, FieldStat]]:
    """Calls whose samples were not looked at before, so that a sample that returns in every epoch counts once."""
    known: set[int] = set()
    fresh = []
    for call, stat in seen:
        batch = inputs.batch(call)
        prints = batch.fingerprints if batch is not None else ()
        if not prints or len(set(prints)) < (1 - _MOST_TWINS) * len(prints) or not known.isdisjoint(prints):
            continue
        known.update(prints)
        fresh.append((call, stat))
    return fresh


def _targets(run: Run, inputs: ModelInputs) -> dict[str, list[tuple[RootCall, FieldStat]]]:
    """The floating-point fields of training batches that do not enter a model, from the loaders' own batches."""
    by_batch: dict[int, RootCall] = {}
    for call in inputs.roles.calls:
        if call.batch is not None and inputs.is_training(call):
            by_batch.setdefault(call.batch, call)
    entering = {(stat.shape[1:], stat.dtype) for call in inputs.training for stat in inputs.stats[call.seq]}
    found: dict[str, list[tuple[RootCall, FieldStat]]] = {}
    for stat in run.field_stats:
        user = by_batch.get(stat.seq) if stat.owner == "batch" else None
        if user is None or (stat.shape[1:], stat.dtype) in entering or stat.field == "0":
            continue
        found.setdefault(stat.field, []).append((user, stat))
    return {field: fresh for field, seen in found.items() if (fresh := _fresh(inputs, seen))}


def _is_looked_for(layers: FirstLayers, stat: FieldStat, module: int) -> bool:
    return any(plain(taker.op.name) in _LOOKS_FOR for taker in layers.consumers(stat.shape, stat.dtype, module))


def _has_mask(inputs: ModelInputs, seen: tuple[RootCall, FieldStat]) -> bool:
    """Whether another input of the same shape holds zeros and ones."""
    call, stat = seen
    others = [other for other in inputs.stats[call.seq] if other.field != stat.field and other.shape == stat.shape]
    return any(min(other.low) == 0 and max(other.high) == 1 and not other.spikes for other in others)


def _search(seen: list[tuple[RootCall, FieldStat]], name: str, location: Location | None) -> list[StandIn]:
    stats = [stat for _, stat in seen if "float" in stat.dtype and len(stat.shape) <= 3]
    values: dict[tuple[int, float], list[tuple[FieldStat, dict[str, Any]]]] = {}
    for stat in stats:
        padded = stat.padding["value"] if stat.padding else None
        for spike in stat.spikes:
            if spike["value"] not in (0.0, padded):
                values.setdefault((spike["feature"], spike["value"]), []).append((stat, spike))
    found = [_judge(feature, value, spikes, stats, name, location) for (feature, value), spikes in values.items()]
    return [one for one in found if one is not None]


def _judge(
    feature: int,
    value: float,
    spikes: list[tuple[FieldStat, dict[str, Any]]],
    stats: list[FieldStat],
    name: str,
    location: Location | None,
) -> StandIn | None:
    concerned = {id(stat) for stat, _ in spikes}
    rest = [stat for stat in stats if id(stat) not in concerned and len(stat.low) > feature]
    low = min([spike["low"] for _, spike in spikes] + [stat.low[feature] for stat in rest])
    high = max([spike["high"] for _, spike in spikes] + [stat.high[feature] for stat in rest])
    gap = max(low - value, value - high)
    far = _FAR_FOR_CODES if is_usual_code(value) else _FAR
    if not high > low or gap < far * (high - low):
        return None
    count = sum(spike["count"] for _, spike in spikes)
    of = sum(stat.count for stat in stats if len(stat.low) > feature)
    twins = math.ceil(_MOST_TWINS * count)
    others = sum(stat.count - spike["count"] for stat, spike in spikes)
    repeated = sum(stat.count - spike["count"] - spike["distinct"] for stat, spike in spikes)
    repeats = (repeated + 1) / (others + 1)
    p = repeats ** max(count - 1 - twins, 0)
    if p >= CHANCE or count < _FEWEST or count > _MOST * of:
        return None
    which = f"{name}, feature {feature}" if len(stats[0].low) > 1 else name
    return StandIn(which, value, count, of, low, high, gap, repeats, p, location)
