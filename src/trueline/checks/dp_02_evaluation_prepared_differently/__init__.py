"""Evaluation inputs prepared in another way than training inputs

## What it checks
Whether what enters a model in evaluation was prepared as in training: range, scale, mean and deviation, order of features and
channels, layout, side of padding; and whether random operations are alive in evaluation.

## Why it hurts accuracy
A model knows only inputs like those it was trained on. A forgotten division, other constants or another order of channels turn
right answers into wrong ones, although training went well. Random changes make every evaluation another one.

## Method
Inputs are compared as they enter the same model, feature by feature (columns, channels), over the calls that were looked at.
Data that really differ must pass, so each rule asks for what preparation does and data do not:

- *ends*: pixels reach the same lowest and highest value in every batch, but other ones on each side;
- *factor*: nearly all features are spread ten times as far on one side (100 times for a single one);
- *standardisation*: most features are moved by more than a deviation where training inputs have mean 0 and deviation 1 (3.5 in
  root mean square, as much as a steady trend can) or have a deviation three times off, or are moved by more than three
  deviations elsewhere (5; series 10); pictures in [0, 1] against standardised ones;
- *order*: the features' means fit within 4 standard errors only when they change places, and are 6 or more off where they are
  (error from the spread of the training batches);
- *own scaler*: all features of the evaluation data have exactly mean 0 and deviation 1 (chance below 1e-6 for a scaler fitted on
  training data), and hold no training samples;
- *layout*: channels first on one side, last on the other;
- *random operations*: a sequential evaluation loader gives the same targets, in an order that chance does not repeat, with other
  inputs in another epoch; or the same batch enters a classifier with other values;
- *padding*: on the left on one side, on the right on the other, without a mask as an input.

## Evidence
The numbers of both sides, and the chance or number of samples behind them.

## Limits
Fewer than eight evaluation samples are judged only when they are ten deviations off. A change that moves means by less than 3.5
deviations and scales by less than three, such as a slightly different mean, is not seen unless pixels reach their ends.
Augmentation on the training side is expected and not reported.

## What to do
Write one preparation for both, and switch off only its random parts in evaluation. Fit scalers on training data only.
"""

from __future__ import annotations

from collections import defaultdict

import msgspec

from trueline.checks.base import Item
from trueline.checks.dp_02_evaluation_prepared_differently import input_mismatch as mismatch
from trueline.checks.dp_02_evaluation_prepared_differently.input_mismatch import Mismatch, Sides
from trueline.checks.dp_02_evaluation_prepared_differently.random_evaluation import random_operations
from trueline.checks.parts import Part, worst_of
from trueline.model import Evidence, FieldStat, Finding, Location, RootCall
from trueline.store import Run
from trueline.views.data_origin import where_made
from trueline.views.first_layers import FirstLayers
from trueline.views.inputs import ModelInputs, by_features, has_no_scale, pooled

item = Item(__name__, __doc__)

CONSEQUENCES = ("hp.02", "ds.02", "tr.07")
RANK = 36

_LIMITS = (
    "Other ends of pixel values, a scale ten times another, means 3.5 (standardised data) or 5 deviations off, or features in "
    "another order would have been seen."
)
_NOT_COMPARED = "no input of a model was looked at both in training and in evaluation, with the same features."


class _Compared(msgspec.Struct, frozen=True):
    """One input from one source of evaluation data. `possible`: whether training and evaluation have
    the same features."""

    field: str
    call: RootCall
    location: Location | None
    found: Mismatch | None
    possible: bool = True

    @property
    def part(self) -> Part:
        name = f"input {self.field!r} at {self.location or self.call.location}"
        if not self.possible:
            return Part(name, item.not_checked(_NOT_COMPARED))
        return Part(name, item.no_problem("Evaluation inputs look as training inputs do.", limits=_LIMITS))


def conclude(run: Run) -> Finding:
    inputs = ModelInputs(run)
    if not inputs.training:
        return item.not_applicable("No training call of a model was looked at in this run.")
    if not inputs.evaluation:
        return item.not_applicable("No evaluation of a trained model was seen in this run.")
    compared = _compare(run, inputs)
    right = any(one.found is None and one.possible for one in compared)
    for one in compared:
        if one.found is not None and (one.found.certain or not right):
            return _problem(run, one, one.found)
    random = random_operations(run, inputs)
    if random is not None:
        return item.problem(
            random.summary,
            confidence=random.confidence,
            evidence=[Evidence(random.detail, random.values, None, random.location)],
            location=random.location,
            fix="Give evaluation a preparation without its random parts (a transform of its own for the evaluation dataset).",
            limits="One changed sample in twenty would have been seen.",
        )
    return worst_of(one.part for one in compared) if compared else item.not_checked(_NOT_COMPARED)


def _problem(run: Run, one: _Compared, found: Mismatch) -> Finding:
    return item.problem(
        f"{found.summary}.",
        confidence=found.confidence,
        evidence=[Evidence(found.detail, found.values, one.call.step, one.call.location)],
        location=where_made(run, one.location, inside=False),
        fix=found.fix,
        limits=_LIMITS,
    )


def _compare(run: Run, inputs: ModelInputs) -> list[_Compared]:
    """Every input of a model that evaluation shares with training, for each source of evaluation inputs."""
    layers = FirstLayers(run)
    training = inputs.fields([call for call in inputs.training if call.fed_by is None])
    compared: list[_Compared] = []
    for key, seen in inputs.fields([call for call in inputs.evaluation if call.fed_by is None]).items():
        if key not in training:
            continue
        ours = [stat for _, stat in training[key]]
        if has_no_scale(ours):
            continue
        by_hand = inputs.roles.loader_of(training[key][0][0]) is None
        if by_hand and not layers.consumers(ours[0].shape, ours[0].dtype, key[0]):
            # What goes in was made by another model, not by preparation.
            continue
        sources: dict[object, list[tuple[RootCall, FieldStat]]] = defaultdict(list)
        for call, stat in seen:
            loader = inputs.roles.loader_of(call)
            sources[call.location if loader is None else loader].append((call, stat))
        with_mask = len(inputs.stats[training[key][0][0].seq]) > 1
        compared += [_compare_source(inputs, ours, pairs, with_mask=with_mask) for pairs in sources.values()]
    return compared


def _compare_source(
    inputs: ModelInputs, ours: list[FieldStat], pairs: list[tuple[RootCall, FieldStat]], *, with_mask: bool
) -> _Compared:
    call, field = pairs[0][0], pairs[0][1].field
    theirs = [stat for _, stat in pairs]
    where = inputs.source_line(call)
    found = mismatch.layout(ours, theirs) or (None if with_mask else _padding(ours, theirs))
    if found is not None:
        return _Compared(field, call, where, found)
    group = by_features(ours)[0]
    same = [stat for stat in theirs if (len(stat.shape), stat.axis, len(stat.mean)) == _features(group[0])]
    if not same or "float" not in group[0].dtype or len(group[0].shape) < 2:
        return _Compared(field, call, where, None, possible=False)
    sides = Sides(pooled(group), pooled(same), group, same, inputs.roles.loader_of(call) is None)
    for test in (mismatch.ends, mismatch.factor, mismatch.standardisation, mismatch.permuted):
        found = test(sides)
        if found is not None:
            return _Compared(field, call, where, found)
    return _Compared(field, call, where, _own_scaler(inputs, sides, pairs))


def _features(stat: FieldStat) -> tuple[int, int | None, int]:
    return len(stat.shape), stat.axis, len(stat.mean)


def _own_scaler(inputs: ModelInputs, sides: Sides, pairs: list[tuple[RootCall, FieldStat]]) -> Mismatch | None:
    """Only for evaluation data that were looked at whole, and hold none of the training samples."""
    batches = [inputs.batch(call) for call, _ in pairs]
    if any(batch is None for batch in batches):
        return None
    prints = {batch.fingerprints: stat for batch, (_, stat) in zip(batches, pairs, strict=True) if batch is not None}
    trained = {sample for call in inputs.roles.calls if inputs.is_training(call) for sample in _samples(inputs, call)}
    if len(prints) != 1 or not trained.isdisjoint(next(iter(prints))):
        return None
    loader = inputs.roles.loader_of(pairs[0][0])
    if loader is not None and inputs.run.loaders[loader].length not in (None, pairs[0][1].shape[0]):
        return None
    once = [pairs[0][1]]
    return mismatch.refitted(Sides(sides.training, pooled(once), sides.training_stats, once, sides.by_hand))


def _samples(inputs: ModelInputs, call: RootCall) -> tuple[int, ...]:
    batch = inputs.batch(call)
    return batch.fingerprints if batch is not None else ()


def _padding(ours: list[FieldStat], theirs: list[FieldStat]) -> Mismatch | None:
    """Padding on another side, in all batches of each."""
    one, other = ({(stat.padding or {}).get("side") for stat in stats} for stats in (ours, theirs))
    if len(one) != 1 or len(other) != 1:
        return None
    first, second = one.pop(), other.pop()
    if {first, second} != {"left", "right"}:
        return None
    return Mismatch(
        f"Sequences are padded on the {first} in training and on the {second} in evaluation",
        f"All {len(ours)} training and {len(theirs)} evaluation batches that were looked at are padded on one side each.",
        {"training": str(first), "evaluation": str(second)},
        "Pad on the same side in both, or give the model a mask.",
        0.85,
        certain=True,
    )
