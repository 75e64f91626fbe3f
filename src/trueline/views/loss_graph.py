"""Whether a loss depends on the model at all: rebuilt from a number, cut off by argmax, flattened by round."""

from __future__ import annotations

from trueline.model import Event, Evidence, Op
from trueline.views.dataflow import (
    COPIES_VALUES,
    LEAVES_FRAMEWORK,
    NO_DERIVATIVE,
    ZERO_DERIVATIVE,
    Trace,
    is_in,
    line_of,
    needs_gradient,
    plain,
    shape_of,
)
from trueline.views.loss_patterns import Fault
from trueline.views.words import either


def constant_loss(trace: Trace) -> Fault | None:
    """Backward passes that start from a leaf: no gradient can reach the model from there."""
    looked_at = [event for event in trace.backwards if event.detail]
    cut_off = [event for event in looked_at if _is_cut_off(event)]
    if not cut_off or len(cut_off) < len(looked_at):
        return None
    event = cut_off[0]
    cut = _last_cut(trace, event)
    where = (line_of(trace.run, cut) if cut is not None else None) or event.location
    made = f" `{plain(cut.name)}` cuts it off." if cut is not None else ""
    return Fault(
        "The loss does not depend on the model: the backward pass starts from a tensor that no differentiable operation "
        f"made.{made} "
        "No parameter gets a gradient.",
        0.97,
        [
            Evidence(
                f"All {len(cut_off)} backward passes that were looked at start from a "
                + either(
                    trace.run,
                    pytorch=f"leaf tensor (autograd function: {event.detail.get('function')}).",
                    mindspore="tensor that nothing differentiable made.",
                ),
                {"backwards": len(cut_off), "leaf": event.detail.get("leaf"), "value": event.value},
                event.step,
                event.location,
            )
        ],
        where,
        either(
            trace.run,
            pytorch="Call backward() on the loss that the model's output went into: no torch.tensor(loss.item()), no "
            "requires_grad=True by hand, no argmax or detach in between.",
            mindspore="Return the loss that the model's output went into from the function that is differentiated "
            "(value_and_grad): no Tensor(loss.asnumpy()), no argmax or stop_gradient in between.",
        ),
    )


def _is_cut_off(event: Event) -> bool:
    return bool(event.detail.get("leaf")) or ("function" in event.detail and event.detail["function"] is None)


def _last_cut(trace: Trace, event: Event) -> Op | None:
    """The operation that lost the gradient: the one that copied the value, or the latest that turned trainable into not."""
    start = trace.producer(event.detail.get("of"))
    if start is not None and is_in(start, COPIES_VALUES):
        return start
    if start is None:
        before = [op for op in trace.ops.values() if op.seq < event.seq and op.step == event.step]
        shape = tuple(event.detail.get("shape") or ())
        copies = [op for op in before if is_in(op, COPIES_VALUES | LEAVES_FRAMEWORK) and shape_of(op) == shape]
        return copies[-1] if copies else None
    cuts = [trace.ops[seq] for seq in trace.ancestors([start]) if cuts_gradient(trace, trace.ops[seq])]
    return max(cuts, key=lambda op: op.seq, default=None)


def cuts_gradient(trace: Trace, op: Op) -> bool:
    """Whether something trainable goes in and nothing trainable comes out."""
    if needs_gradient(op):
        return False
    for reference in op.inputs:
        source = trace.producer(reference)
        if source is not None and needs_gradient(source):
            return True
        if reference.startswith("p") and reference[1:].isdigit():
            parameter = trace.run.parameters.get(int(reference[1:]))
            if parameter is not None and parameter.trainable and not parameter.buffer:
                return True
    return is_in(op, NO_DERIVATIVE) and bool(op.inputs)


def step_function_in_loss(trace: Trace) -> Fault | None:
    """round, sign and the like between the model and the loss: their derivative is zero everywhere."""
    gradients = {
        snapshot.gradient
        for snapshots in trace.run.snapshots.values()
        for snapshot in snapshots
        if snapshot.gradient is not None and snapshot.trainable
    }
    if "value" in gradients or "zero" not in gradients:
        return None
    for seq in sorted(trace.loss_ancestors, reverse=True):
        op = trace.ops[seq]
        module = trace.run.modules.get(op.module) if op.module is not None else None
        if not is_in(op, ZERO_DERIVATIVE) or not needs_gradient(op) or (module is not None and module.kind != "loss"):
            continue
        where = line_of(trace.run, op)
        return Fault(
            f"The loss is taken of `{plain(op.name)}` of the model's output, whose derivative is zero everywhere: no "
            "parameter can learn.",
            0.95,
            [
                Evidence(
                    "The gradient of every parameter is exactly zero at every sampled step.",
                    {"operation": plain(op.name)},
                    op.step,
                    where,
                )
            ],
            where,
            f"Take the loss of the output itself; use {plain(op.name)} only for metrics.",
        )
    return None
