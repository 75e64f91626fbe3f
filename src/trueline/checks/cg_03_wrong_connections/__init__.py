"""Nodes wrongly connected

## What it checks
Whether the parts of the network are connected as their sizes and names ask for: results that are computed and thrown away,
layers that are built and never called, two layers in a row without a nonlinearity, recurrent and attention layers that go
along the samples instead of the positions, and reshapes that mix axes or put the samples of a batch into the features.

## Why it hurts accuracy
Such a network runs and its loss falls, but it is not the one that was designed: it lacks a skip connection, a normalisation
or a nonlinearity, or it learns from scrambled inputs and from the neighbours that a sample happens to have in its batch.

## Method
The operations of the first steps are traced with their inputs, shapes and lines.

- *Result thrown away*: no operation, loss or backward pass takes the output of a layer or activation, and the text of its
  line proves that nobody could: a call that is a statement of its own, or a variable that is never read.
- *Never called*: a layer on a line of its own, trainable and held by the optimizer, without a gradient at every single step, and
  a place where it belongs: a layer built alike is called twice instead; a norm, an embedding or a square layer fits its
  neighbours; others of the same list are called. Heads for other occasions, ready-made models and loaded weights stay quiet.
- *Nothing between*: the output of a linear layer (or a convolution larger than 1x1) goes into another one beside it through
  reshapes or dropout alone, and the features between them are at least as many as those before or after: the product of
  the two is one matrix. Bottlenecks (low rank, LoRA, autoencoders), tied weights and layers of different modules stay quiet.
- *Samples taken for time*: an output of a recurrent or attention layer has the samples of the batch on the axis that it goes
  along; that they are samples is proven by one target each, or by the loader's batch size.
- *Reshape instead of transposition*: sizes before and after are the same in another order, or heads are split from (or merged
  into) the wrong axis.
- *Batch in the features*: a whole batch becomes one row of features in front of a linear layer.

## Evidence
The operation with its shapes and line, or the layer and the steps at which it had no gradient.

## Limits
Only traced steps are seen (the first ones, not compiled models). Axes of equal size cannot be told apart. A skip connection
of which no trace is left in the script cannot be missed. Axes mixed in the loss itself are cg.04's.

## What to do
Assign the result, call the layer, put the activation in place, set batch_first=True, or transpose instead of reshaping.
"""

from __future__ import annotations

from trueline.checks.base import Item
from trueline.checks.cg_03_wrong_connections.dropped_results import dropped_result
from trueline.checks.cg_03_wrong_connections.linear_chains import linear_chain
from trueline.checks.cg_03_wrong_connections.mixed_axes import reshaped_wrongly, samples_as_time, samples_in_features
from trueline.checks.cg_03_wrong_connections.uncalled_layers import uncalled_layer
from trueline.model import Evidence, Finding
from trueline.store import Run
from trueline.views.dataflow import Trace
from trueline.views.loss_patterns import Fault
from trueline.views.parameters import ParameterHistory

ITEM = Item(__name__, __doc__)
NEEDS = ("operations",)
RANK = 18
CONSEQUENCES = ("cg.02", "tr.05", "hp.01", "hp.02")


def conclude(run: Run) -> Finding:
    if not run.events_of("backward"):
        return ITEM.not_applicable("The run has no backward pass: nothing was trained.")
    history, trace = ParameterHistory(run), Trace(run)
    if not history.weights:
        return ITEM.not_applicable("No module with parameters was called.")
    if not trace.ops:
        return ITEM.not_checked("no operations were traced, as in compiled models.")
    found: list[Fault] = [
        fault
        for fault in (
            samples_as_time(trace),
            samples_in_features(trace),
            reshaped_wrongly(trace),
            dropped_result(trace),
            uncalled_layer(history, trace),
            linear_chain(history, trace),
        )
        if fault is not None
    ]
    steps = len({op.step for op in trace.ops.values()})
    limits = (
        f"Looked at {len(trace.ops)} operations of {steps} traced steps and at {len(run.modules)} modules. Would have seen a "
        "result that a single line throws away, a fitting layer that is never called, two layers without a nonlinearity between "
        "them, and axes of different size taken for each other."
    )
    if not found:
        return ITEM.no_problem("The traced operations are connected without loose ends.", limits=limits, confidence=0.85)
    worst = max(found, key=lambda fault: fault.confidence)
    others = [Evidence(fault.summary, {}, None, fault.location) for fault in found if fault is not worst]
    return ITEM.problem(
        worst.summary,
        confidence=worst.confidence,
        evidence=[*worst.evidence, *others],
        fix=worst.fix,
        location=worst.location,
        limits=limits,
    )
