"""Axes that are taken for each other: samples for time, a reshape where a transposition was meant, samples in the features."""

from __future__ import annotations

import math

from trueline.model import Evidence, Location, Module, Op
from trueline.views.dataflow import RESHAPES, Trace, is_in, line_of, plain, shape_of
from trueline.views.loss_patterns import Fault
from trueline.views.sample_axis import sample_counts
from trueline.views.source import line_of_construction
from trueline.views.words import either

RECURRENT = frozenset({"lstm", "gru", "rnn_tanh", "rnn_relu"})
ATTENTION = "multi_head_attention_forward"


def samples_as_time(trace: Trace) -> Fault | None:
    """A recurrent or attention layer that goes along the axis of the samples."""
    counts = sample_counts(trace.run)
    found: dict[int, list[Op]] = {}
    clear: set[int] = set()
    for op in trace.ops.values():
        name, shape, samples = plain(op.name), shape_of(op), counts.get(op.step)
        if (name not in RECURRENT and name != ATTENTION) or op.module is None or samples is None or len(shape) != 3:
            continue
        if _axis_of_time(trace, op) is None or shape[0] == shape[1] or 1 in shape[:2]:
            continue
        along = shape[_axis_of_time(trace, op) or 0]
        across = shape[1 - (_axis_of_time(trace, op) or 0)]
        if along == samples and across != samples:
            found.setdefault(op.module, []).append(op)
        else:
            clear.add(op.module)
    wrong = [ops for module, ops in found.items() if module not in clear]
    return _time_fault(trace, wrong[0][0], counts) if wrong else None


def _axis_of_time(trace: Trace, op: Op) -> int | None:
    """Which of the first two axes of an output the layer goes along."""
    if plain(op.name) == ATTENTION:
        return 0
    batch_first = trace.run.modules[op.module].settings.get("batch_first") if op.module is not None else None
    return None if not isinstance(batch_first, bool) else int(batch_first)


def _time_fault(trace: Trace, op: Op, counts: dict[int, int]) -> Fault:
    run = trace.run
    module = run.modules[op.module or 0]
    shape, axis = shape_of(op), _axis_of_time(trace, op) or 0
    where = _built_line(trace, module) or line_of(run, op)
    flag = "batch_first=True" if axis == 0 and not module.settings.get("batch_first") else "the samples on the axis it expects"
    return Fault(
        f"{module.name} ({module.type}) goes along the samples instead of the positions: its output {list(shape)} has the "
        f"{counts[op.step]} samples of the batch on axis {axis}, which it takes for time, so that samples see each other.",
        0.93,
        [
            Evidence(
                f"Output {list(shape)} of `{plain(op.name)}` with batch_first={module.settings.get('batch_first')}; a batch has "
                f"{counts[op.step]} samples (one target each).",
                {"shape": list(shape), "samples": counts[op.step], "axis_of_time": axis},
                op.step,
                line_of(run, op),
            )
        ],
        where,
        f"Give {module.type} {flag}, or transpose its input (and output) to (time, samples, features).",
    )


def _built_line(trace: Trace, module: Module) -> Location | None:
    """The line that built the layer. Copies have none of their own: then the line that built what was copied, when the text
    tells it, or the nearest line around."""
    path, copied = module.path, module.type
    while path:
        at = next((m for m in trace.run.modules.values() if m.root == module.root and m.path == path), None)
        if at is not None and at.built is not None:
            original = None if path == module.path else line_of_construction(trace.run, at.built, copied)
            return (original or at.built).of_module(module.name)
        if at is not None:
            copied = at.type
        path = path.rpartition(".")[0]
    return None


def reshaped_wrongly(trace: Trace) -> Fault | None:
    """A view or reshape inside of a model that tears axes apart: its sizes say that a transposition was meant."""
    for op in trace.ops.values():
        if not is_in(op, RESHAPES) or op.module is None or trace.run.modules[op.module].kind == "loss":
            continue
        before, after = _input_shape(trace, op), shape_of(op)
        if before is None or op.seq not in trace.loss_ancestors or not _feeds_weights(trace, op):
            continue
        meant = _meant(before, after)
        if meant is not None:
            return _reshape_fault(trace, op, before, after, meant)
    return None


def samples_in_features(trace: Trace) -> Fault | None:
    """A reshape that puts the samples of a batch side by side as features of one row."""
    counts = sample_counts(trace.run)
    for op in trace.ops.values():
        samples = counts.get(op.step)
        if not is_in(op, RESHAPES) or op.module is None or samples is None or op.seq not in trace.loss_ancestors:
            continue
        before, after = _input_shape(trace, op), shape_of(op)
        if before is None or len(before) < 2 or before[0] != samples or not after or math.prod(before) == samples:
            continue
        one_row = after[-1] == math.prod(before) and math.prod(after[:-1]) == 1
        if one_row and any(_is_linear_layer(later) for later in trace.consumers.get(op.seq, [])):
            where = line_of(trace.run, op)
            return Fault(
                f"`{plain(op.name)}` makes one row of the whole batch: {list(before)} becomes {list(after)}, and the layer "
                f"behind it mixes the {samples} samples as if they were features.",
                0.9,
                [
                    Evidence(
                        f"A batch has {samples} samples (one target each); after this line none of the axes counts them.",
                        {"before": list(before), "after": list(after), "samples": samples},
                        op.step,
                        where,
                    )
                ],
                where,
                either(
                    trace.run,
                    pytorch="Keep the first axis: x.flatten(1), or x.view(x.size(0), -1).",
                    mindspore="Keep the first axis: x.flatten(start_dim=1), or x.view(x.shape[0], -1).",
                ),
            )
    return None


def _is_linear_layer(op: Op) -> bool:
    return plain(op.name) == "linear" and any(reference.startswith("p") for reference in op.inputs[1:])


def _input_shape(trace: Trace, op: Op) -> tuple[int, ...] | None:
    source = next(iter(trace.sources(op)), None)
    if source is not None:
        # Operations with several results are told apart by their numbers of values.
        shapes = [tuple(output.get("shape") or ()) for output in source.outputs]
        fitting = [shape for shape in shapes if math.prod(shape) == math.prod(shape_of(op))]
        return fitting[0] if len(set(fitting)) == 1 else None
    fed = op.settings.get("fed")
    return tuple(fed[0][0]) if fed and len(fed) == 1 else None


def _feeds_weights(trace: Trace, op: Op) -> bool:
    """Whether weights or an attention product are applied to the result."""
    names = {plain(trace.ops[seq].name) for seq in trace.descendants([op]) if seq != op.seq}
    return bool(names & {"linear", "matmul", "bmm", "conv1d", "conv2d", "scaled_dot_product_attention", "einsum", *RECURRENT})


def _meant(before: tuple[int, ...], after: tuple[int, ...]) -> str | None:
    """The transposition that the sizes of a reshape ask for; None when it only merges or splits neighbouring axes."""
    one = tuple(size for size in before if size != 1)
    two = tuple(size for size in after if size != 1)
    if one == two or len(one) < 2 or len(two) < 2:
        return None
    if sorted(one) == sorted(two) and (len(set(one)) == len(one) or (len(one) > 2 and one[0] != two[0] and len(set(one)) > 1)):
        return f"a transposition from {list(one)} to {list(two)}"
    if len(two) == 3 and two[1] == one[0] not in one[1:] and two[0] in one[1:] and two[0] % one[0]:
        # (samples, channels, height, width) as (width, samples, the others): a sequence for a recurrent layer.
        return f"a permutation that brings the axis of {two[0]} to the front, then reshape({', '.join(map(str, two))})"
    if one[0] != two[0]:
        return None
    inner, outer = one[1:], two[1:]
    if len(inner) == 2 and len(outer) == 3 and outer[1] == inner[0] != outer[0] and outer[0] * outer[2] == inner[1]:
        return f"view(…, {inner[0]}, {outer[0]}, {outer[2]}).transpose(1, 2)"
    if len(inner) == 3 and len(outer) == 2 and outer[0] == inner[1] != inner[0] and outer[1] == inner[0] * inner[2]:
        return f"transpose(1, 2) before the reshape to {list(two)}"
    if len(inner) == 3 and len(outer) == 2 and outer[1] == inner[0] != inner[1] * inner[2] and outer[0] == inner[1] * inner[2]:
        return "flatten(2).transpose(1, 2)"
    return None


def _reshape_fault(trace: Trace, op: Op, before: tuple[int, ...], after: tuple[int, ...], meant: str) -> Fault:
    where = line_of(trace.run, op)
    return Fault(
        f"`{plain(op.name)}` from {list(before)} to {list(after)} keeps the order of values in memory and so mixes two axes: "
        f"the sizes ask for {meant}.",
        0.85,
        [
            Evidence(
                f"{list(before)} and {list(after)} have the same axes in another order; a reshape does not move values, it "
                "counts them off anew.",
                {"before": list(before), "after": list(after)},
                op.step,
                where,
            )
        ],
        where,
        f"Use permute or transpose to change the order of axes: {meant}.",
    )
