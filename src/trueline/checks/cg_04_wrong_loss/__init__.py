"""Wrong loss

## What it checks
Whether the loss that the run minimises is the one its parts are made for: what goes into each loss function (scores,
probabilities, log-probabilities), on which axis, in which shape and order, and whether the loss depends on the model.

## Why it hurts accuracy
A loss that is fed the wrong thing still falls for a while. Softmax before cross-entropy leaves the loss a floor well above
zero and squeezes its gradients; NLL of raw scores can be lowered without end; an (N, 1) prediction against an (N) target
learns the mean of the targets; a loss rebuilt from a number trains nothing. The script runs and the accuracy stays low.

## Method
The first steps are recorded in full: each loss call with the values that went in, and the operations that made them. From
the input of a loss the record is walked back through operations that do not change values (reshape, transpose, cast,
clamp …). Found there, or proved by the values alone:

- softmax or log-softmax before cross-entropy, sigmoid before binary cross-entropy with logits, softmax of softmax;
- NLL or KL divergence of probabilities (rows in [0, 1] that sum to 1) or NLL of raw scores (log-probabilities are never
  above 0 and have a log-sum-exp of 0 in each row);
- binary cross-entropy of values that come straight from a layer, without sigmoid;
- softmax over the batch axis, or log-softmax over another than the class axis; scores with the classes on the wrong axis,
  or reshaped where a transpose was needed;
- shapes that broadcast to more values than either side has, also in losses written by hand;
- prediction and target swapped (the target needs a gradient, the input does not);
- a backward pass that starts from a leaf tensor; round, sign or argmax between the model and the loss.

## Evidence
The operation in question with its line, the shapes, the value range and the row sums of what went into the loss.

## Limits
Only losses of the framework and elementwise arithmetic are understood; what a loss written by hand means is not judged.
Choice of reduction, class weights and the choice of loss for the task are not judged. Log-softmax before cross-entropy is
reported with low confidence: it does not change the values.

## What to do
Give cross_entropy and binary_cross_entropy_with_logits raw scores, nll_loss and kl_div log-probabilities,
binary_cross_entropy probabilities; give prediction and target the same shape, prediction first; call backward() on the loss
itself, or return it from the function that MindSpore's `value_and_grad` differentiates.
"""

from __future__ import annotations

from collections.abc import Callable

from trueline.checks.base import Item
from trueline.checks.cg_04_wrong_loss import loss_axes as axes
from trueline.model import Finding, LossCall
from trueline.store import Run
from trueline.views import loss_graph as graph
from trueline.views import loss_patterns as patterns
from trueline.views.dataflow import Trace

ITEM = Item(__name__, __doc__)
NEEDS = ("operations", "losses")
RANK = 20
CONSEQUENCES = ("cg.02", "tr.05", "hp.01", "hp.02")
OF_A_RUN: tuple[Callable[[Trace], patterns.Fault | None], ...] = (
    graph.constant_loss,
    graph.step_function_in_loss,
    axes.hand_written_broadcast,
    axes.batch_softmax_by_hand,
)
OF_A_LOSS_CALL: tuple[Callable[[Trace, LossCall], patterns.Fault | None], ...] = (
    axes.normalised_over_batch,
    axes.normalised_over_other_axis,
    patterns.softmax_before_own_softmax,
    patterns.sigmoid_before_logits,
    patterns.nll_without_log,
    patterns.softmax_of_softmax,
    patterns.bce_without_sigmoid,
    patterns.kl_without_log,
    patterns.swapped,
    axes.shapes_broadcast,
    axes.class_axis,
)


def conclude(run: Run) -> Finding:
    trace = Trace(run)
    if not trace.backwards:
        return ITEM.not_applicable("The run has no backward pass: nothing was trained.")
    losses = _training_losses(trace)
    if not losses and not trace.ops:
        return ITEM.not_checked("no loss function of the framework was called in training, and no operations were traced.")
    faults = _faults(trace, losses)
    limits = _limits(trace, losses)
    if not faults:
        called = ", ".join(sorted({loss.kind for loss in losses})) or "a loss written by hand"
        return ITEM.no_problem(
            f"What goes into the loss fits it ({called}; {len(losses)} calls and {len(trace.ops)} operations looked at).",
            limits=limits,
            confidence=0.9 if losses else 0.5,
        )
    worst = max(faults, key=lambda fault: fault.confidence)
    others = [part for fault in faults if fault is not worst for part in fault.evidence[:1]]
    return ITEM.problem(
        worst.summary,
        confidence=worst.confidence,
        evidence=worst.evidence + others,
        fix=worst.fix,
        location=worst.location,
        limits=limits,
    )


def _faults(trace: Trace, losses: list[LossCall]) -> list[patterns.Fault]:
    """One fault per pattern and line, the patterns of the whole run first."""
    found: dict[tuple[int, str], patterns.Fault] = {}
    for number, of_run in enumerate(OF_A_RUN):
        fault = of_run(trace)
        if fault is not None:
            found[-1 - number, ""] = fault
    for loss in losses:
        for number, of_loss in enumerate(OF_A_LOSS_CALL):
            fault = of_loss(trace, loss)
            if fault is not None:
                found.setdefault((number, str(fault.location)), fault)
    return list(found.values())


def _training_losses(trace: Trace) -> list[LossCall]:
    """The loss calls that a backward pass of the same step came after and, where the trace can tell, went through."""
    last_backward: dict[int, int] = {}
    for event in trace.backwards:
        last_backward[event.step] = event.seq
    return [
        loss
        for loss in trace.run.loss_calls
        if loss.grad and loss.seq < last_backward.get(loss.step, -1) and _reaches_backward(trace, loss)
    ]


def _reaches_backward(trace: Trace, loss: LossCall) -> bool:
    if not (loss.input.get("requires_grad") or loss.target.get("requires_grad")):
        return False
    makers = [op for op in (trace.producer(loss.input.get("op")), trace.producer(loss.target.get("op"))) if op is not None]
    roots_of_step = [event for event in trace.backwards if event.step == loss.step]
    traced = all(trace.producer(event.detail.get("of")) is not None for event in roots_of_step)
    return not makers or not traced or any(op.seq in trace.loss_ancestors for op in makers)


def _limits(trace: Trace, losses: list[LossCall]) -> str:
    steps = sorted({op.step for op in trace.ops.values()})
    traced = f"operations of steps {', '.join(map(str, steps))}" if steps else "no operations"
    return (
        f"Looked at {len(losses)} calls of the framework's loss functions in training and {traced}. A loss written by "
        "hand is checked for "
        "broadcasting, softmax over the batch, step functions and constant value only; the choice of loss and reduction "
        "is not judged."
    )
