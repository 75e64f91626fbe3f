"""Data not normalised

## What it checks
The scale of what enters the first layers of a model in training: values far from the size of 1 that initial weights and learning
rates are made for, and features whose scales differ by orders of magnitude.

## Why it hurts accuracy
Near its first layer the loss is curved in proportion to the second moment of the inputs, E[x²]. Inputs of 0 … 255 curve it some
10,000 times more than standardised ones: a learning rate that suits the other layers makes this one diverge or saturate, and one
that suits this layer leaves the others standing. Where features differ in scale, the largest one sets the pace and the small
ones are not learned: the condition number of the problem is at least the square of the ratio of their scales.

## Method
Ranges and moments per feature (columns, channels) of the inputs of training calls, as they enter the model: whatever the script
did to them before counts. The first operations on each input are taken from the traced steps. A problem, for inputs that a
linear, convolution, recurrent or attention layer takes as they are, when

- two features differ by a factor of 100 or more, both in their root mean square and in their largest value (condition number of
  at least 10,000), and the larger one is above 10; or
- the mean of E[x²] over all features is 1,000 or more: a thousand times the curvature of standardised data.

Left alone: inputs of embeddings, inputs that the model itself scales or normalises first, results of other models. A layer
followed at once by a normalisation gives the same result, and the same gradients, for inputs of any common scale: then only
features that differ from each other count.

## Evidence
Range, mean and root mean square of the inputs, of the largest and of the smallest feature; the layer that takes them.

## Limits
Inputs within 30 of zero in root mean square, such as pixels of 0 … 16, are not reported: they train more slowly at worst. Adam
makes up for part of the fault (the scale of the gradients), not for the condition number. Needs a traced step: nothing is said
of compiled models.

## What to do
Standardise each feature with mean and deviation of the training set (the same ones in evaluation), or scale pictures to [0, 1]
by dividing by 255; or let the model begin with a BatchNorm.
"""

from __future__ import annotations

import msgspec
import numpy as np

from trueline.checks.base import Item
from trueline.checks.parts import Part, worst_of
from trueline.model import Evidence, FieldStat, Finding, Location, Op, RootCall
from trueline.store import Run
from trueline.views.data_origin import where_made
from trueline.views.dataflow import line_of, plain
from trueline.views.first_layers import LOOKUPS, NORMALISING, WEIGHTED, FirstLayers
from trueline.views.inputs import ModelInputs, Pool, by_features, has_no_scale, pooled
from trueline.views.words import either

item = Item(__name__, __doc__)
NEEDS = ("operations",)

CONSEQUENCES = ("hp.01", "hp.02", "hp.03", "tr.05", "mp.01", "mp.02")
RANK = 42

_APART = 100.0
_LARGE = 10.0
_LARGE_SQUARE = 1000.0
_RAW_PIXEL = 255.0
_NOT_TAKEN = "no layer with weights was seen to take the model's inputs as they are in a traced step."


class _Field(msgspec.Struct, frozen=True):
    """An input of a model that a layer with weights takes as it is."""

    name: str
    pool: Pool
    op: Op
    location: Location | None
    normalised_next: bool


def conclude(run: Run) -> Finding:
    inputs = ModelInputs(run)
    calls = [call for call in inputs.training if call.fed_by is None]
    if not inputs.training:
        return item.not_applicable("No training call of a model was looked at in this run.")
    layers = FirstLayers(run)
    parts = [
        Part(f"input {place!r} of {run.modules[module].name}", _conclude_input(run, inputs, layers, module, place, seen))
        for (module, place), seen in inputs.fields(calls).items()
    ]
    return worst_of(parts) if parts else item.not_checked(_NOT_TAKEN)


def _conclude_input(
    run: Run, inputs: ModelInputs, layers: FirstLayers, module: int, place: str, seen: list[tuple[RootCall, FieldStat]]
) -> Finding:
    stats = by_features([stat for _, stat in seen])[0]
    takers = [taker.op for taker in layers.consumers(stats[0].shape, stats[0].dtype, module)]
    weighted = [op for op in takers if plain(op.name) in WEIGHTED]
    if weighted and np.isfinite(pooled(stats).mean).any():
        scaled = all(layers.is_normalised_next(op) for op in weighted)
        field = _Field(place, pooled(stats), weighted[0], inputs.source_line(seen[0][0]), scaled)
        return _features_apart(run, field) or _large_values(run, field) or _no_problem(field)
    passed = {plain(op.name) for op in takers if op not in weighted}
    if passed & NORMALISING:
        return item.no_problem(
            "The model normalises its inputs first.", limits="Inputs of any scale are put right by the first layer."
        )
    if passed & LOOKUPS:
        return item.not_applicable("The model looks its inputs up in an embedding: their size has no meaning.")
    if not takers and layers.is_made_by_a_model(stats[0].shape, module):
        return item.not_applicable("What enters the model is made by another one.")
    if has_no_scale(stats):
        return item.not_applicable("The inputs are masks, or whole numbers that count or name something.")
    return item.not_checked(_NOT_TAKEN)


def _features_apart(run: Run, field: _Field) -> Finding | None:
    """Features that differ by orders of magnitude: the largest against the smallest that vary at all."""
    pool = field.pool
    size, spread = np.sqrt(pool.square), pool.std
    reach = np.maximum(np.abs(pool.low), np.abs(pool.high))
    varying = np.flatnonzero(np.isfinite(size) & (spread > 0))
    if len(varying) < 2:
        return None
    largest = varying[np.argmax(size[varying])]
    apart = (size[largest] >= _APART * spread[varying]) & (reach[largest] >= _APART * reach[varying])
    if size[largest] < _LARGE or not apart.any():
        return None
    small = varying[apart]
    smallest = small[np.argmin(spread[small])]
    ratio = float(size[largest] / spread[smallest])
    return item.problem(
        f"The features of input {field.name!r} differ in scale by a factor of {_rounded(ratio)}: feature {largest} reaches "
        f"{reach[largest]:.4g}, feature {smallest} {reach[smallest]:.3g}. The layer that takes them cannot learn from both.",
        confidence=0.85,
        evidence=[
            _of_feature(pool, int(largest), "largest"),
            _of_feature(pool, int(smallest), "smallest"),
            Evidence(
                f"The condition number of this layer's inputs is at least {_rounded(ratio**2)} ({len(small)} of {len(varying)} "
                f"features are {_APART:g} times smaller than the largest, or more).",
                {"ratio": ratio, "condition_number": ratio**2, "features_apart": len(small)},
            ),
            _taken_by(run, field),
        ],
        location=_line(run, field),
        fix="Standardise every feature with mean and deviation of the training set (scikit-learn's StandardScaler, fitted on the "
        "training part only), in training and evaluation alike.",
        limits=f"Features that differ by a factor of {_APART:g} in mean square root and range would have been seen.",
    )


def _large_values(run: Run, field: _Field) -> Finding | None:
    pool = field.pool
    square = float(np.nanmean(pool.square))
    if square < _LARGE_SQUARE or field.normalised_next:
        return None
    low, high = float(np.nanmin(pool.low)), float(np.nanmax(pool.high))
    pixels = low >= 0 and _RAW_PIXEL / 2 < high <= _RAW_PIXEL
    divides = either(run, pytorch="torchvision's ToTensor", mindspore="ToTensor of dataset.vision")
    fix = (
        f"Divide by 255 ({divides} does), and standardise with mean and deviation of the training set."
        if pixels
        else "Standardise the inputs with mean and deviation of the training set, in training and evaluation alike."
    )
    return item.problem(
        f"The inputs are not normalised: {'raw pixel ' if pixels else ''}values of {low:.4g} … {high:.4g} enter the first layer.",
        confidence=0.9 if pixels else 0.8,
        evidence=[
            Evidence(
                f"Input {field.name!r}, shape {list(pool.shape)}: mean square {square:.4g}, so that the loss is "
                f"curved {square:.2g} "
                "times more along this layer's weights than with standardised inputs.",
                {"low": low, "high": high, "mean_square": square, "samples": pool.samples},
            ),
            _taken_by(run, field),
        ],
        location=_line(run, field),
        fix=fix,
        limits=f"A mean square of {_LARGE_SQUARE:g} (standardised data: 1) would have been seen.",
    )


def _of_feature(pool: Pool, feature: int, which: str) -> Evidence:
    return Evidence(
        f"The {which} feature, {feature}: {pool.low[feature]:.4g} … {pool.high[feature]:.4g}, mean {pool.mean[feature]:.4g}, "
        f"deviation {pool.std[feature]:.4g}.",
        {
            "feature": feature, "low": float(pool.low[feature]), "high": float(pool.high[feature]),
            "mean": float(pool.mean[feature]), "std": float(pool.std[feature]),
        },
    )  # fmt: skip


def _taken_by(run: Run, field: _Field) -> Evidence:
    module = run.modules.get(field.op.module) if field.op.module is not None else None
    name = f"`{module.name}` ({module.type})" if module is not None else f"`{plain(field.op.name)}`"
    return Evidence(f"They enter {name} as they are.", {"operation": plain(field.op.name)}, field.op.step, line_of(run, field.op))


def _line(run: Run, field: _Field) -> Location | None:
    """The source of the data, said of the layer that takes them."""
    module = run.modules.get(field.op.module) if field.op.module is not None else None
    where = where_made(run, field.location)
    return None if where is None else where.of_module(module.name if module is not None else None)


def _no_problem(field: _Field) -> Finding:
    pool, square = field.pool, float(np.nanmean(field.pool.square))
    told = f"Inputs of the first layer lie in {np.nanmin(pool.low):.4g} … {np.nanmax(pool.high):.4g}, mean square {square:.3g}"
    also = "; a normalisation follows at once." if square >= _LARGE_SQUARE else "."
    return item.no_problem(
        "The inputs are of a size that layers can learn from.",
        evidence=[Evidence(told + also, {"mean_square": square, "samples": pool.samples})],
        limits=f"Features that differ by a factor of {_APART:g}, or a mean square of {_LARGE_SQUARE:g}, would have been seen.",
    )


def _rounded(number: float) -> str:
    return f"{float(f'{number:.2g}'):,.0f}"
