"""Missing values in the data

## What it checks
Missing values that reach the training: NaN and infinite values in batches, and stand-ins for them such as -999, which are
numbers to the model like any other.

## Why it hurts accuracy
One NaN in a batch makes the loss NaN, its gradients NaN, and with the next update every weight. A stand-in far outside of the
range of a feature passes for its most extreme value: it dominates the feature's scale, and the model learns who has not
answered instead of what was asked.

## Method
- *NaN and infinite values* are counted in every field of every batch. They are a problem when they do harm: the first step
  whose loss or gradients are not finite was fed with them, the model's output is not finite, or no backward pass ever follows
  their batches. Values that are filled in or masked before the model, or by it, do none and are told as evidence only.
- *Stand-ins* are looked for in what enters the model in training, and in targets: one exact value, repeated, further from all
  other values of its feature than those are spread. Continuous data do not repeat a value: with the share *r* of values that
  repeat another one within the range, *k* equal values far outside of it have a chance of r^(k-1). A problem below 1e-6, where
  fewer than half of the values are concerned, and the distance is twice the spread of the others (once for the usual codes:
  -1, ±99, ±999, ±9999 …). Each sample counts once.

## Evidence
Fields, samples and batches with missing values, the first step that they broke; value, share, range of the others and chance of
each stand-in.

## Limits
Only batches that the script used are seen, and stand-ins only in those that were looked at (the first ones and sampled steps).
Zeros are never called a stand-in: many features have real ones. A stand-in inside of the range of its feature cannot be told
from a value. Features with few different values (categories, one-hot) are left alone.

## What to do
Drop the rows, or fill the gaps with the mean, median or a model's estimate, and add a mask as an input of its own if being
missing carries meaning. Do it before scaling.
"""

from __future__ import annotations

from trueline.checks.base import Item
from trueline.checks.ds_01_missing_values.missing_values import Gaps, harm_of_gaps
from trueline.checks.ds_01_missing_values.stand_ins import CHANCE, Looked, StandIn, stand_ins
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.data_origin import where_made
from trueline.views.inputs import ModelInputs

item = Item(__name__, __doc__)

CONSEQUENCES = ("mp.01", "mp.02", "hp.01", "hp.02", "tr.05", "tr.07", "dp.01", "ds.02", "ds.03", "cg.02")
RANK = 31

_FIX = (
    "Find the fields with gaps (`numpy.isnan(x).sum(axis=0)`), then drop those rows or fill them in before scaling, for example "
    "with `numpy.nanmedian`; for targets, leave the sample out of the loss."
)


def conclude(run: Run) -> Finding:
    if not run.events_of("backward"):
        return item.not_applicable("The run has no backward pass: nothing was trained.")
    inputs = ModelInputs(run)
    if not run.batches:
        return item.not_applicable("No batches were seen in this run.")
    gaps = harm_of_gaps(run, inputs)
    if gaps is not None and gaps.harm is not None:
        return _problem_gaps(run, gaps, gaps.harm)
    looked = stand_ins(run, inputs)
    if looked.found:
        return _problem_stand_ins(run, looked.found, looked)
    told = [] if gaps is None else [_evidence_of(gaps)]
    if looked.handled:
        told.append(Evidence(looked.handled))
    values = sum(batch.size for batch in run.batches)
    summary = (
        "No missing values reach the training."
        if gaps is None
        else "Batches hold missing values, but they are filled in or masked before they can do harm."
    )
    return item.no_problem(summary, evidence=told, limits=_limits(values, looked))


def _limits(samples: int, looked: Looked) -> str:
    seen = f"One NaN or infinite value in {samples} samples would have been seen"
    if not looked.samples:
        return f"{seen}; stand-ins such as -999 were not looked for, as no table of numbers entered a model in training."
    return (
        f"{seen}; of stand-ins such as -999, about {looked.smallest} equal values in the {looked.samples} "
        f"samples that were looked "
        "at, further away than the others are spread."
    )


def _evidence_of(gaps: Gaps) -> Evidence:
    return Evidence(
        f"{gaps.batches} of {gaps.all_batches} batches have NaN or infinite values: "
        + "; ".join(f"field {name!r}: {count} in {samples} samples" for name, (count, samples) in sorted(gaps.fields.items())),
        {"batches": gaps.batches, "of": gaps.all_batches, "fields": {name: list(both) for name, both in gaps.fields.items()}},
        gaps.first_step,
        gaps.location,
    )


def _problem_gaps(run: Run, gaps: Gaps, harm: str) -> Finding:
    names = ", ".join(repr(name) for name in sorted(gaps.fields))
    return item.problem(
        f"{gaps.batches} of {gaps.all_batches} batches hold missing values (NaN or infinite) in field "
        f"{names}, and they reach the "
        f"training: {harm}.",
        confidence=gaps.confidence,
        evidence=[_evidence_of(gaps), Evidence(f"{harm[0].upper()}{harm[1:]}.", {}, gaps.first_step, gaps.location)],
        location=where_made(run, gaps.location),
        fix=_FIX,
        limits=f"One NaN or infinite value in {gaps.samples} samples would have been seen.",
    )


def _problem_stand_ins(run: Run, found: list[StandIn], looked: Looked) -> Finding:
    first = found[0]
    which = first.name if len(found) == 1 else f"{first.name} and {len(found) - 1} more"
    return item.problem(
        f"Missing values are coded as numbers: {which} hold{'s' if len(found) == 1 else ''} {first.value:g} "
        f"in {first.share:.1%} of "
        f"the samples, far outside of the range {first.low:.4g} … {first.high:.4g} of the others.",
        confidence=0.9 if first.is_usual_code else 0.8,
        evidence=[_evidence_of_stand_in(one) for one in found[:4]],
        location=where_made(run, first.location),
        fix=f"Turn {first.value:g} into NaN when reading the data (`na_values=[{first.value:g}]`), and drop or fill "
        "in those values before scaling."
        if first.is_usual_code
        else "Find out which code marks missing values in the source, turn it into NaN when reading, and fill those values in "
        "before scaling.",
        limits=f"About {looked.smallest} equal values in {looked.samples} samples would have been seen.",
    )


def _evidence_of_stand_in(one: StandIn) -> Evidence:
    p = max(one.p, 1e-12)
    return Evidence(
        f"{one.name}: {one.count} of {one.of} values are exactly {one.value:g}; the others lie in "
        f"{one.low:.4g} … {one.high:.4g}, "
        f"and {one.repeats:.1%} of them repeat another: a chance of less than {p:.1g} (threshold {CHANCE:g}).",
        {
            "value": one.value, "count": one.count, "of": one.of, "low": one.low, "high": one.high, "gap": one.gap,
            "repeats": one.repeats, "p": p,
        },
        None,
        one.location,
    )  # fmt: skip
