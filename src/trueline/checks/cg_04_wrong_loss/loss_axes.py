"""What is wrong with the shapes and axes that go into a loss: broadcasting, softmax over the batch, the class axis."""

from __future__ import annotations

import math

from trueline.model import Evidence, LossCall, Op
from trueline.views.dataflow import (
    ELEMENTWISE,
    MOVES_AXES,
    REDUCTIONS,
    RESHAPES,
    SHAPE_ONLY,
    Trace,
    is_in,
    line_of,
    needs_gradient,
    plain,
    shape_of,
)
from trueline.views.loss_patterns import Fault, loss_name, made_by, values_of
from trueline.views.words import words_of

_BINARY = ELEMENTWISE & frozenset("add sub subtract mul multiply div divide true_divide truediv".split())
_CONVOLUTIONS = frozenset("conv1d conv2d conv3d convolution conv_transpose1d conv_transpose2d conv_transpose3d".split())
_NORMALISING = frozenset({"softmax", "log_softmax", "softmin", "gumbel_softmax"})
_BROADCASTING = frozenset(
    {
        "mse_loss",
        "l1_loss",
        "smooth_l1_loss",
        "huber_loss",
        "poisson_nll_loss",
        "gaussian_nll_loss",
        "binary_cross_entropy",
        "binary_cross_entropy_with_logits",
    }
)


def normalised_over_batch(trace: Trace, loss: LossCall) -> Fault | None:
    batch = (loss.target.get("shape") or [0])[0]
    for op in trace.region(trace.producer(loss.input.get("op")), SHAPE_ONLY | ELEMENTWISE):
        if plain(op.name) not in _NORMALISING:
            continue
        shape, axis = shape_of(op), _softmax_axis(op)
        square = len(shape) == 2 and shape[0] == shape[1]
        if axis != 0 or len(shape) < 2 or shape[0] != batch or batch < 2 or shape[1] < 2 or square:
            continue
        where = line_of(trace.run, op)
        return Fault(
            f"{plain(op.name)} normalises over the batch (axis 0 of shape {list(shape)}) instead of over the classes: "
            "the samples of a "
            "batch compete with each other.",
            0.95,
            [made_by(trace, op, f"{plain(op.name)} over axis 0, of size {shape[0]}, the batch size."), values_of(loss)],
            where,
            f"Normalise over the class axis: {plain(op.name)}(…, {words_of(trace.run).axis}=1) at {where}"
            + (", or give cross_entropy the raw scores." if loss.kind in ("cross_entropy", "nll_loss") else "."),
        )
    return None


def normalised_over_other_axis(trace: Trace, loss: LossCall) -> Fault | None:
    """Log-softmax over another axis than that of the classes, which is 1 for maps and sequences, too."""
    if loss.kind != "nll_loss":
        return None
    op = trace.back_through(trace.producer(loss.input.get("op")), SHAPE_ONLY - MOVES_AXES - RESHAPES)
    if op is None or plain(op.name) != "log_softmax":
        return None
    shape, axis = shape_of(op), _softmax_axis(op)
    if axis == 1 or len(shape) < 3 or list(shape) != list(loss.input.get("shape") or ()):
        return None
    where = line_of(trace.run, op)
    return Fault(
        f"log_softmax normalises over axis {axis} of shape {list(shape)}, while the loss takes axis 1 for the classes: positions "
        "compete instead of classes.",
        0.95,
        [made_by(trace, op, f"log_softmax over axis {axis}, of size {shape[axis or 0]}."), values_of(loss)],
        where,
        f"Normalise over the class axis: log_softmax(…, {words_of(trace.run).axis}=1) at {where}, or give cross_entropy the raw "
        "scores.",
    )


def _softmax_axis(op: Op) -> int | None:
    """The axis a softmax works on, counted from the front; without one torch takes 0 for one or three axes, else 1."""
    rank = len(shape_of(op))
    axis = op.settings.get("dim", op.settings.get("axis"))
    if axis is None:
        return 0 if rank in (0, 1, 3) else 1
    return int(axis) % rank if rank else None


def shapes_broadcast(_trace: Trace, loss: LossCall) -> Fault | None:
    if loss.kind not in _BROADCASTING:
        return None
    first, second = tuple(loss.input.get("shape") or ()), tuple(loss.target.get("shape") or ())
    whole = broadcast(first, second)
    if whole is None or len(first) == len(second) or math.prod(whole) <= max(math.prod(first), math.prod(second)):
        return None
    return Fault(
        f"The {loss_name(loss)} broadcasts: input {list(first)} and target {list(second)} become {list(whole)}, so every "
        "prediction is compared "
        "with every target, and the best answer is the mean of the targets.",
        0.98,
        [
            Evidence(
                f"{math.prod(whole)} differences are averaged where {max(math.prod(first), math.prod(second))} were meant.",
                {"input": list(first), "target": list(second), "broadcast": list(whole)},
                loss.step,
                loss.location,
            )
        ],
        loss.location,
        f"Give both the same shape: {'input.squeeze(-1)' if len(first) > len(second) else 'input.unsqueeze(-1)'}, or "
        "target.view_as(input).",
    )


def broadcast(first: tuple[int, ...], second: tuple[int, ...]) -> tuple[int, ...] | None:
    """The shape that two shapes broadcast to; None when they do not."""
    rank = max(len(first), len(second))
    whole = []
    for one, other in zip((1,) * (rank - len(first)) + first, (1,) * (rank - len(second)) + second, strict=True):
        if one != other and 1 not in (one, other):
            return None
        whole.append(max(one, other))
    return tuple(whole)


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
                f"{plain(op.name)} makes scores of shape {made}; no transpose or permute comes between it and the loss, "
                f"which gets {given}.",
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
            f"The loss broadcasts: {list(pair[0])} and {list(pair[1])} become {list(whole)} in `{plain(op.name)}`, so "
            "every prediction is "
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
            over_batch = axis is not None and len(shape) == 2 and int(axis) % 2 == 0 and shape[0] > 1 and shape[0] in sizes
            if not over_batch or shape[1] in (1, shape[0]):
                continue
            where = line_of(trace.run, op)
            return Fault(
                f"{plain(op.name)} normalises over the batch (axis 0 of shape {list(shape)}) instead of over the classes.",
                0.93,
                [
                    Evidence(
                        f"{plain(op.name)} over axis 0, of size {shape[0]}, the batch size.",
                        {"shape": list(shape)},
                        op.step,
                        where,
                    )
                ],
                where,
                f"Normalise over the class axis: {plain(op.name)}(…, {words_of(trace.run).axis}=1).",
            )
    return None
