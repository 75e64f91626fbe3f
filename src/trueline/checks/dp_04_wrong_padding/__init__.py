"""Padding treated as data

## What it checks
Sequences that are filled up to one length, and what becomes of the filling: whether it counts in the loss, is attended to, is
averaged into a mean over time, or is what a recurrent layer has read last.

## Why it hurts accuracy
The model is graded on positions that do not exist, and learns to predict filling, which is easy and makes the loss look good. An
attention or mean that takes filling in depends on how long the longest sequence of the batch is. A recurrent layer that reads on
over filling at the end has forgotten the content by the time its last state is taken.

## Method
Side, value and share of padding are taken from the inputs of training calls. Whole numbers count as padding only when the value
never occurs in the steps that all sequences have (chance below 1e-6 if it were content); steps of several numbers when these are
all equal. At least a tenth of all steps must be padding. Then, in the traced steps:

- *loss*: a cross-entropy with reduction takes as many targets as there are steps, padding included, and its `ignore_index` is not
  among them (or is not the padding value);
- *last state*: a recurrent layer takes sequences with padding on the right, not packed, and its last state or last step is used;
- *packing*: padded sequences are packed, and all of their steps are kept: their lengths were taken after padding;
- *attention*: attention over the sequence has no mask of any kind;
- *mask*: `key_padding_mask` leaves out the end of every sequence at which all of them have content, and not the other one;
- *mean*: a mean over the time axis, or an averaging EmbeddingBag, takes padding in;
- *padding index*: an Embedding's `padding_idx` is not the value that the sequences are padded with.

All but the first and last are left alone as soon as the model asks its input where padding is (a comparison, lengths, a mask).

## Evidence
Side, value, share and lengths; the operation and its line; `ignore_index` and range of the targets.

## Limits
Needs a traced step. Losses with class weights or without reduction, sums and maxima over time, and convolutions over padded
sequences are not judged: they may well be right. Series of a single number are not judged, as zeros in them may be real.

## What to do
Set `ignore_index` of the loss to the padding value, give attention a `key_padding_mask`, divide sums by the real lengths, and
pack sequences for recurrent layers (`pack_padded_sequence`; in MindSpore give the layer `seq_length`) or pad them on the left.
"""

from __future__ import annotations

from trueline.checks.base import Item
from trueline.checks.dp_04_wrong_padding.padded_sequences import SMALLEST_SHARE, Knowledge, Padded, padded_inputs
from trueline.checks.dp_04_wrong_padding.padding_faults import (
    PaddingFault,
    embedding_fault,
    loss_fault,
    mask_fault,
    model_fault,
    packing_fault,
)
from trueline.checks.parts import Part, worst_of
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.dataflow import Trace
from trueline.views.inputs import ModelInputs, is_mask

item = Item(__name__, __doc__)
NEEDS = ("operations",)

CONSEQUENCES = ("ds.02", "hp.01", "hp.02", "ds.03", "tr.05")
RANK = 33

_LIMITS = f"Padding of {SMALLEST_SHARE:.0%} of all steps in the loss, attention, a mean or a last state would have been seen."


def conclude(run: Run) -> Finding:
    inputs = ModelInputs(run)
    if not inputs.training:
        return item.not_applicable("No training call of a model was looked at in this run.")
    padded = padded_inputs(inputs)
    if not padded:
        return item.not_applicable("No input of a model in training is a padded sequence.")
    if not run.ops:
        return item.not_checked(
            "the inputs are padded, but no step was traced (a compiled model, or one without a training step)."
        )
    knowledge = Knowledge(run, Trace(run))
    # A mask is padded as the content is, and nothing but a question where.
    content = [one for one in padded if not is_mask([one.stat])] or padded
    return worst_of(
        Part(f"input {one.field!r} at {one.call.location}", _conclude_input(run, inputs, knowledge, one)) for one in content
    )


def _conclude_input(run: Run, inputs: ModelInputs, knowledge: Knowledge, one: Padded) -> Finding:
    if not knowledge.first_takers(one):
        return item.not_checked("the input is padded, but no traced step shows what the model does with it.")
    fault = loss_fault(run, inputs, one) or mask_fault(knowledge, one) or packing_fault(knowledge, one)
    if fault is None and not knowledge.is_used(one):
        fault = model_fault(knowledge, one)
    if fault is None:
        fault = embedding_fault(knowledge, one)
    if fault is not None:
        return _problem(one, fault)
    return item.no_problem(
        "The inputs are padded, and the model is told where."
        if knowledge.is_used(one)
        else "The inputs are padded; nothing was seen to use padding.",
        evidence=[_of_padding(one)],
        limits=_LIMITS,
    )


def _of_padding(padded: Padded) -> Evidence:
    return Evidence(
        f"Input {padded.field!r} is padded with {padded.value:g} on the {padded.side}: {padded.share:.0%} of all steps, in "
        f"{padded.rows:.0%} of the sequences; content is {padded.lengths[0]} to {padded.lengths[1]} steps long.",
        {
            "value": padded.value, "side": padded.side, "share": padded.share, "rows": padded.rows,
            "shortest": padded.lengths[0], "longest": padded.lengths[1],
        },
        padded.call.step,
        padded.call.location,
    )  # fmt: skip


def _problem(padded: Padded, fault: PaddingFault) -> Finding:
    return item.problem(
        fault.summary,
        confidence=fault.confidence,
        evidence=[_of_padding(padded), Evidence(fault.detail, fault.values, padded.call.step, fault.location)],
        location=fault.location,
        fix=fault.fix,
        limits=_LIMITS,
    )
