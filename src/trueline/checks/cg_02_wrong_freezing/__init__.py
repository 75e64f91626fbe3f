"""Wrong freezing

## What it checks
Whether the parameters that should learn can learn: trainable ones that never get a gradient because the way to the loss is
cut (detach, no_grad, a round trip through numpy, an operation without derivative), layers that are frozen at their random
initial values, and frozen parameters that an optimizer still moves.

## Why it hurts accuracy
A cut or frozen layer keeps its random initial values and the rest of the network has to work around it. The loss falls, more
slowly and to a higher value, and nothing reports an error.

## Method
For every parameter the recorder notes at sampled steps whether it is trainable, its optimizer, whether it had no gradient, a
zero or a real one, and a hash of its content. The operations of the first steps tell how values flow.

- *Cut*: trainable, held by an optimizer, no gradient at any step, content unchanged, and the trace proves that its values
  reach the loss through an operation that takes something trainable and gives something that is not.
- *Frozen at random*: never trainable, content unchanged since a random initialisation in this run, not loaded, applied to
  values that depend on trainable parameters (a layer behind trained ones, above all the output layer).
- *Flat*: gradients exactly zero at every sampled step (at least three) behind an operation of zero derivative (round, sign …).
- *Frozen but moving*: not trainable at two successive snapshots, held by an optimizer that steps, and content changed.

## Evidence
The parameters, their gradients at the sampled steps, unchanged content, and the operation that cuts with its line.

## Limits
Intended freezing is not reported: weights that were loaded or trained earlier in the run, a frozen first part without
anything trained before it (random features), adapters beside frozen weights, embeddings, teachers and moving averages.
Modules that are never called belong to cg.03, parameters outside of every optimizer to tr.02, and zero gradients of all-zero
weights to wi.01.

## What to do
Remove the detach, no_grad or numpy call on the way to the loss (in MindSpore `ops.stop_gradient`, `asnumpy`, or a call outside of
the function that is differentiated); set requires_grad=True for the new layer; build the optimizer from the parameters that are
trainable.
"""

from __future__ import annotations

from itertools import pairwise

from trueline.checks.base import Item
from trueline.checks.cg_02_wrong_freezing.frozen_layers import frozen_at_random, moving_while_frozen
from trueline.model import Evidence, Finding, Parameter
from trueline.store import Run
from trueline.views.dataflow import Trace, line_of, plain
from trueline.views.gradient_cuts import Cut, find_cut, find_flat_operation
from trueline.views.parameters import ParameterHistory, listed
from trueline.views.words import either

ITEM = Item(__name__, __doc__)
NEEDS = ("freezing", "operations")
RANK = 25
CONSEQUENCES = ("tr.05", "hp.01", "hp.02")
ENOUGH_SAMPLES = 3


def conclude(run: Run) -> Finding:
    history, trace = ParameterHistory(run), Trace(run)
    if not run.events_of("backward"):
        return ITEM.not_applicable("The run has no backward pass: nothing was trained.")
    if not any(history.gradients(parameter) for parameter in history.weights):
        return ITEM.not_checked("no parameter of a called module was looked at during a step.")
    limits = _limits(run, history, trace)
    details = [event.detail for event in trace.backwards if event.detail]
    if details and all(detail.get("leaf") for detail in details):
        return ITEM.not_checked("the loss does not depend on any parameter (see cg.04), so that no gradient tells of freezing.")
    cut = _cut_parameters(history, trace)
    if any(history.is_fresh(parameter) for parameter, _ in cut):
        return _cut_finding(history, cut, limits)
    flat = _flat_finding(history, trace, limits)
    if flat is not None:
        return flat
    for found in (frozen_at_random(history, trace), moving_while_frozen(history)):
        if found is not None:
            return ITEM.problem(
                found.summary,
                confidence=found.confidence,
                evidence=found.evidence,
                fix=found.fix,
                location=found.location,
                limits=limits,
            )
    return ITEM.no_problem(_healthy_summary(history), limits=limits, confidence=0.9 if trace.ops else 0.6)


def _cut_parameters(history: ParameterHistory, trace: Trace) -> list[tuple[Parameter, Cut]]:
    found = []
    for parameter in history.weights:
        places = history.held.get(parameter.id, [])
        if (
            places
            and history.always_trainable(parameter)
            and set(history.gradients(parameter)) == {"none"}
            and all(place.without_gradient == place.steps for place in places)
            and any(place.steps for place in places)
            and (history.never_moved(parameter) or _only_decays(history, parameter))
            and parameter.loaded is None
        ):
            cut = find_cut(trace, parameter)
            if cut is not None:
                found.append((parameter, cut))
    return found


def _only_decays(history: ParameterHistory, parameter: Parameter) -> bool:
    """Whether what moves a parameter without gradient is weight decay, as of optimizers that are handed zeros for it: it shrinks
    from step to step."""
    groups = {(place.optimizer, place.group) for place in history.held.get(parameter.id, [])}
    decays = any(
        (one.optimizer, one.group) in groups and one.name == "weight_decay" and one.value for one in history.run.hyperparameters
    )
    sizes = [stat.l2 for stat in history.run.stats("parameter", parameter.id) if stat.l2 is not None]
    return decays and all(after <= before for before, after in pairwise(sizes))


def _cut_finding(history: ParameterHistory, found: list[tuple[Parameter, Cut]], limits: str) -> Finding:
    cut = found[0][1]
    here = [parameter for parameter, other in found if other.location == cut.location]
    elsewhere = [parameter for parameter, other in found if other.location != cut.location]
    sampled = len(history.gradients(here[0]))
    evidence = [
        Evidence(
            f"{len(here)} trainable parameters held by an optimizer had no gradient at any of {history.optimizer_steps} "
            f"steps and {'never changed' if history.never_moved(here[0]) else 'only decayed'}.",
            {"parameters": [parameter.name for parameter in here[:20]], "count": len(here), "sampled_steps": sampled},
        ),
        Evidence(f"Their values reach the loss, and the gradient is cut {cut.how}.", {}, 0, cut.location),
    ]
    if elsewhere:
        evidence.append(Evidence(f"Cut at another place too: {listed(parameter.name for parameter in elsewhere)}."))
    return ITEM.problem(
        f"{listed(parameter.name for parameter in here)} never get{'s' if len(here) == 1 else ''} a gradient: it is cut "
        f"{cut.how}.",
        confidence=cut.confidence,
        evidence=evidence,
        fix=cut.fix,
        location=cut.location,
        limits=limits,
    )


def _flat_finding(history: ParameterHistory, trace: Trace, limits: str) -> Finding | None:
    for parameter in history.weights:
        gradients = history.gradients(parameter)
        if set(gradients) != {"zero"} or len(gradients) < ENOUGH_SAMPLES or not history.is_held(parameter):
            continue
        op = find_flat_operation(trace, parameter)
        if op is None:
            continue
        where = line_of(history.run, op)
        return ITEM.problem(
            f"{parameter.name} gets a gradient of exactly zero at every step: `{plain(op.name)}` at {where} has a "
            "derivative of zero everywhere.",
            confidence=0.93,
            evidence=[
                Evidence(
                    f"Zero gradient at all {len(gradients)} sampled steps.",
                    {"parameter": parameter.name, "operation": plain(op.name)},
                    op.step,
                    where,
                )
            ],
            fix=f"Use a differentiable stand-in for {plain(op.name)}, or a straight-through estimator: x + "
            + either(
                history.run,
                pytorch=f"({plain(op.name)}(x) - x).detach().",
                mindspore=f"ops.stop_gradient({plain(op.name)}(x) - x).",
            ),
            location=where,
            limits=limits,
        )
    return None


def _healthy_summary(history: ParameterHistory) -> str:
    learning = [parameter for parameter in history.weights if "value" in history.gradients(parameter)]
    frozen = [parameter for parameter in history.weights if history.always_frozen(parameter)]
    told = f"{len(learning)} of {len(history.weights)} parameters get gradients, and no trainable one is cut off from the loss."
    if frozen:
        loaded = sum(parameter.loaded is not None for parameter in frozen)
        told += f" {len(frozen)} are frozen ({loaded} of them loaded), which looks intended."
    return told


def _limits(run: Run, history: ParameterHistory, trace: Trace) -> str:
    sampled = len(
        {snapshot.step for snapshots in run.snapshots.values() for snapshot in snapshots if snapshot.gradient is not None}
    )
    flow = "with their data flow" if trace.ops else "without the data flow, so that no cut can be proved"
    return (
        f"Looked at {len(history.weights)} parameters at {sampled} sampled steps, {flow}. Frozen parts that were loaded, "
        "trained before, or come "
        "first in the network are taken as intended."
    )
