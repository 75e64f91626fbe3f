"""What is wrong with a loss as a computation: its axes, its hand-written parts, and whether it depends on the model at all."""

from __future__ import annotations

from trueline.checks._dataflow import (
    COPIES_VALUES,
    ELEMENTWISE,
    LEAVES_FRAMEWORK,
    MOVES_AXES,
    NO_DERIVATIVE,
    REDUCTIONS,
    RESHAPES,
    SHAPE_ONLY,
    ZERO_DERIVATIVE,
    Trace,
    is_in,
    line_of,
    needs_gradient,
    plain,
    shape_of,
)
from trueline.checks._loss_patterns import Fault, broadcast
from trueline.model import Event, Evidence, LossCall, Op

_BINARY = ELEMENTWISE & frozenset("add sub subtract rsub mul multiply div divide true_divide radd rmul truediv rtruediv".split())
_CONVOLUTIONS = frozenset("conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d".split())


def class_axis(trace: Trace, loss: LossCall) -> Fault | None:
    """Cross-entropy takes axis 1 for the classes: scores whose classes lie on another axis, or were reshaped onto it."""
    if loss.kind not in ("cross_entropy", "nll_loss"):
        return None
    op, reshaped = trace.producer(loss.input.get("op")), None
    while op is not None and (is_in(op, SHAPE_ONLY) or plain(op.name) == "log_softmax"):
        if is_in(op, MOVES_AXES):
            return None
        if is_in(op, RESHAPES):
            reshaped = op
        op = next(iter(trace.sources(op)), None)
    if op is None:
        return None
    made, given = shape_of(op), tuple(loss.input.get("shape") or ())
    targets = tuple(loss.target.get("shape") or ())
    if targets == given or len(given) < 2:
        return None
    if plain(op.name) == "linear" and len(made) >= 3 and len(given) >= 3 and made[-1] > 1 and made[1] > 1:
        classes_last = given == made and made[1] == made[-1]
        scrambled = reshaped is not None and given != made and given[:2] == (made[0], made[-1]) and made[1] != made[-1]
        if classes_last or scrambled:
            return _axis_fault(trace, loss, op, reshaped if scrambled else None, f"transpose(1, {len(made) - 1})")
    if is_in(op, _CONVOLUTIONS) and reshaped is not None and len(made) >= 3 and len(given) == 2:
        positions = made[2:]
        if given[1] == made[1] and given[0] > made[0] and max(positions) > 1 and made[1] > 1:
            return _axis_fault(trace, loss, op, reshaped, "movedim(1, -1)")
    return None


def _axis_fault(trace: Trace, loss: LossCall, op: Op, reshaped: Op | None, move: str) -> Fault:
    made, given = list(shape_of(op)), list(loss.input.get("shape") or ())
    how = (
        f"they are reshaped from {made} to {given}, which mixes classes and positions"
        if reshaped is not None
        else f"they are given as {given} with the classes last, while the loss takes axis 1 for the classes"
    )
    where = line_of(trace.run, reshaped) if reshaped is not None else loss.location
    return Fault(
        f"The class axis of the scores is wrong: {how}.",
        0.92 if reshaped is not None else 0.8,
        [
            Evidence(
                f"{plain(op.name)} makes scores of shape {made}; no transpose or permute comes between it and the loss, which gets {given}.",
                {"made": made, "given": given, "target": list(loss.target.get("shape") or ())},
                loss.step,
                line_of(trace.run, op),
            )
        ],
        where,
        f"Move the class axis instead of reshaping: scores.{move} before the loss.",
    )


def hand_written_broadcast(trace: Trace) -> Fault | None:
    """(N, 1) against (N): an (N, N) table of differences in a loss written by hand, of a prediction and a target."""
    for seq in sorted(trace.loss_ancestors):
        op = trace.ops[seq]
        whole = shape_of(op)
        if not is_in(op, _BINARY) or len(whole) != 2 or whole[0] != whole[1] or whole[0] < 2 or len(op.inputs) != 2:
            continue
        size = whole[0]
        sides = [(_input_shapes(trace, op, number), _may_need_gradient(trace, op, number)) for number in (0, 1)]
        (one, one_trained), (other, other_trained) = sides
        if one_trained == other_trained:
            continue
        pair = next(
            (
                (first, second)
                for first in one
                for second in other
                if {first, second} == {(size, 1), (size,)} and broadcast(first, second) == whole
            ),
            None,
        )
        if pair is None:
            continue
        where = line_of(trace.run, op)
        return Fault(
            f"The loss broadcasts: {list(pair[0])} and {list(pair[1])} become {list(whole)} in `{plain(op.name)}`, so every prediction is "
            "compared with every target, and the best answer is the mean of the targets.",
            0.95,
            [
                Evidence(
                    f"`{plain(op.name)}` of a prediction and a target gives {size * size} values for {size} samples.",
                    {"first": list(pair[0]), "second": list(pair[1]), "result": list(whole)},
                    op.step,
                    where,
                )
            ],
            where,
            "Give both the same shape before they meet: prediction.squeeze(-1), or target.view_as(prediction).",
        )
    return None


def _input_shapes(trace: Trace, op: Op, number: int) -> list[tuple[int, ...]]:
    """The shapes that one input of an operation may have, as far as the record tells."""
    reference = op.inputs[number]
    source = trace.producer(reference)
    if source is not None:
        return [tuple(output.get("shape") or ()) for output in source.outputs]
    if reference.startswith("p") and reference[1:].isdigit() and int(reference[1:]) in trace.run.parameters:
        return [trace.run.parameters[int(reference[1:])].shape]
    if reference.startswith("b") and reference[1:].isdigit():
        batch = next((batch for batch in trace.run.batches if batch.seq == int(reference[1:])), None)
        return [tuple(field.get("shape") or ()) for field in batch.fields] if batch is not None else []
    return []


def _may_need_gradient(trace: Trace, op: Op, number: int) -> bool:
    source = trace.producer(op.inputs[number])
    return needs_gradient(source) if source is not None else op.inputs[number].startswith("p")


def batch_softmax_by_hand(trace: Trace) -> Fault | None:
    """Softmax over the batch axis on the way into a loss written by hand."""
    sizes = {batch.size for batch in trace.run.batches}
    for root in trace.backward_roots:
        for op in trace.region(root, SHAPE_ONLY | ELEMENTWISE | REDUCTIONS):
            if plain(op.name) not in ("softmax", "log_softmax"):
                continue
            shape = shape_of(op)
            axis = op.settings.get("dim")
            if axis is None or len(shape) != 2 or int(axis) % 2 != 0 or shape[0] not in sizes or shape[0] < 2 or shape[1] in (1, shape[0]):
                continue
            where = line_of(trace.run, op)
            return Fault(
                f"{plain(op.name)} normalises over the batch (axis 0 of shape {list(shape)}) instead of over the classes.",
                0.93,
                [Evidence(f"{plain(op.name)} over axis 0, of size {shape[0]}, the batch size.", {"shape": list(shape)}, op.step, where)],
                where,
                f"Normalise over the class axis: {plain(op.name)}(…, dim=1).",
            )
    return None


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
        f"The loss does not depend on the model: the backward pass starts from a tensor that no differentiable operation made.{made} "
        "No parameter gets a gradient.",
        0.97,
        [
            Evidence(
                f"All {len(cut_off)} backward passes that were looked at start from a leaf tensor (autograd function: {event.detail.get('function')}).",
                {"backwards": len(cut_off), "leaf": event.detail.get("leaf"), "value": event.value},
                event.step,
                event.location,
            )
        ],
        where,
        "Call backward() on the loss that the model's output went into: no torch.tensor(loss.item()), no requires_grad=True by hand, no "
        "argmax or detach in between.",
    )


def _is_cut_off(event: Event) -> bool:
    return bool(event.detail.get("leaf")) or ("function" in event.detail and event.detail["function"] is None)


def _last_cut(trace: Trace, event: Event) -> Op | None:
    """The operation that lost the gradient: the one that copied the value, or the latest that turned trainable into not."""
    start = trace.producer(event.detail.get("of"))
    if start is not None and is_in(start, COPIES_VALUES):
        return start
    if start is None:
        copies = [op for op in trace.ops.values() if op.seq < event.seq and op.step == event.step and is_in(op, COPIES_VALUES | LEAVES_FRAMEWORK)]
        scalars = [op for op in copies if shape_of(op) == tuple(event.detail.get("shape") or ())]
        return scalars[-1] if scalars else None
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
            f"The loss is taken of `{plain(op.name)}` of the model's output, whose derivative is zero everywhere: no parameter can learn.",
            0.95,
            [Evidence("The gradient of every parameter is exactly zero at every sampled step.", {"operation": plain(op.name)}, op.step, where)],
            where,
            f"Take the loss of the output itself; use {plain(op.name)} only for metrics.",
        )
    return None
