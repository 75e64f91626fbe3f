"""Two layers in a row that do the work of one, because nothing nonlinear stands between them."""

from __future__ import annotations

import math

from trueline.model import Evidence, Module, Op, Parameter
from trueline.views.dataflow import MOVES_AXES, SHAPE_ONLY, Trace, is_in, line_of, parent_of, plain
from trueline.views.loss_patterns import Fault
from trueline.views.parameters import ParameterHistory
from trueline.views.source import times_read

CONVOLUTIONS = frozenset({"conv1d", "conv2d", "conv3d"})
# What may stand between two layers without making them more than one; clamping and picking values is not among them.
TRANSPARENT = SHAPE_ONLY - frozenset(
    "clamp clip clamp_min clamp_max masked_select gather index getitem chunk split unbind".split()
)


def linear_chain(history: ParameterHistory, trace: Trace) -> Fault | None:
    """Two linear layers (or two convolutions) of one module, one directly after the other, without a bottleneck."""
    for op in trace.ops.values():
        second = _layer(history, op)
        before = None if second is None else _directly_before(trace, op)
        first = None if before is None else _layer(history, before)
        if second is None or before is None or first is None or before.step != op.step:
            continue
        if _is_redundant(trace, before, first, op, second) and not _is_used_elsewhere(trace, before, op):
            return _fault(trace, before, first, second)
    return None


def _directly_before(trace: Trace, op: Op) -> Op | None:
    """The operation whose output an operation works on, but for changes of shape that leave the last axis in its place."""
    source = next(iter(trace.sources(op)), None)
    while source is not None and is_in(source, TRANSPARENT) and not is_in(source, MOVES_AXES):
        if len(trace.consumers.get(source.seq, [])) > 1:
            return None
        source = next(iter(trace.sources(source)), None)
    return source


def _is_used_elsewhere(trace: Trace, before: Op, op: Op) -> bool:
    """Whether the features between the two layers serve something else too: other operations, or the caller of the function."""
    if len(trace.consumers.get(before.seq, [])) > 1:
        return True
    if before.location is None or op.location is None:
        return False
    if before.location.function != op.location.function:
        return True
    reads = times_read(trace.run, before.location)
    return reads is not None and reads > 1


def _layer(history: ParameterHistory, op: Op) -> tuple[Module, Parameter] | None:
    """The module and weight of an operation that is a plain linear layer or convolution of the network being trained."""
    run = history.run
    name = plain(op.name)
    if (name != "linear" and name not in CONVOLUTIONS) or op.module is None:
        return None
    module = run.modules[op.module]
    numbers = [int(reference[1:]) for reference in op.inputs[1:] if reference.startswith("p") and reference[1:].isdigit()]
    weights = [run.parameters[n] for n in numbers if n in run.parameters and len(run.parameters[n].shape) > 1]
    if len(weights) != 1 or module.kind not in ("linear", "conv"):
        return None
    trained = history.is_held(weights[0]) and history.always_trainable(weights[0])
    tied = any(other.same_as == weights[0].id for other in run.parameters.values())
    return (module, weights[0]) if trained and not tied else None


def _is_redundant(trace: Trace, before: Op, first: tuple[Module, Parameter], op: Op, second: tuple[Module, Parameter]) -> bool:
    run = trace.run
    same_kind = first[0].kind == second[0].kind and plain(before.name) == plain(op.name)
    beside = parent_of(run, first[0].id) == parent_of(run, second[0].id) and first[0].id != second[0].id
    if not same_kind or not beside or not _written_here(trace, first[0]):
        return False
    if first[0].kind == "conv" and not (_is_full(first[1]) and _is_full(second[1])):
        return False
    takes, between, gives = first[1].shape[1], first[1].shape[0], second[1].shape[0]
    if second[1].shape[1] != between:
        # Flattened or folded in between: the first layer's outputs are many positions of the second layer's input.
        return False
    return between >= min(takes, gives) and gives > 1


def _written_here(trace: Trace, module: Module) -> bool:
    """Whether the layer was built on a line of its own, not as part of a ready-made model."""
    parent = parent_of(trace.run, module.id)
    return module.built is not None and parent is not None and _is_script(trace, parent, module)


def _is_script(trace: Trace, parent: int, module: Module) -> bool:
    holder = trace.run.modules[parent]
    return holder.kind == "container" or holder.built != module.built


def _is_full(weight: Parameter) -> bool:
    """Whether a convolution looks at neighbours and at all channels; 1x1 and depthwise ones factorise on purpose."""
    return len(weight.shape) > 2 and math.prod(weight.shape[2:]) > 1 and weight.shape[1] > 1


def _fault(trace: Trace, before: Op, first: tuple[Module, Parameter], second: tuple[Module, Parameter]) -> Fault:
    where = line_of(trace.run, before)
    takes, between, gives = first[1].shape[1], first[1].shape[0], second[1].shape[0]
    kind = "linear layers" if first[0].kind == "linear" else "convolutions"
    return Fault(
        f"{first[0].name} and {second[0].name} are two {kind} with nothing nonlinear between them: together they can do no more "
        f"than one layer from {takes} to {gives} features.",
        0.8,
        [
            Evidence(
                f"The output of {first[0].name} ({takes} to {between}) goes into {second[0].name} ({between} to {gives}) "
                "unchanged but for its shape or dropout; the product of the two matrices is one matrix, and no "
                "bottleneck makes it smaller.",
                {"first": first[0].name, "second": second[0].name, "features": [takes, between, gives]},
                before.step,
                where,
            )
        ],
        where,
        f"Put the activation between {first[0].name} and {second[0].name}, or use one layer.",
    )
