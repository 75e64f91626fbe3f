"""Where the way from a parameter to the loss is cut, so that no gradient can come back along it."""

from __future__ import annotations

import msgspec

from trueline.model import Location, Op, Parameter
from trueline.views.dataflow import (
    COPIES_VALUES,
    LEAVES_FRAMEWORK,
    ZERO_DERIVATIVE,
    Trace,
    is_in,
    is_within,
    line_of,
    needs_gradient,
    parent_of,
    plain,
    shape_of,
)
from trueline.views.loss_graph import cuts_gradient
from trueline.views.words import either

_EXPLICIT = frozenset({"detach", "data"})
_LEAVES_WITH_VALUES = LEAVES_FRAMEWORK - {"item"}


class Cut(msgspec.Struct, frozen=True):
    """A place where the gradient is lost: `how` completes the sentence "the gradient is cut …"."""

    how: str
    fix: str
    location: Location | None
    module: str | None
    confidence: float


def find_cut(trace: Trace, parameter: Parameter) -> Cut | None:
    """The cut between a parameter and the loss, when the trace proves that its values reach the loss and its gradient cannot."""
    uses = [op for op in trace.users_of_parameter.get(parameter.id, []) if not _is_bookkeeping(op)]
    if not uses:
        return _cut_between_roots(trace, parameter)
    reached = trace.descendants(uses)
    on_the_way = reached & trace.loss_ancestors
    cuts = sorted(seq for seq in on_the_way if cuts_gradient(trace, trace.ops[seq]))
    if cuts:
        return _described(trace, trace.ops[cuts[0]])
    return _round_trip(trace, reached)


def _is_bookkeeping(op: Op) -> bool:
    """Saving and copying weights (state_dict, moving averages) detaches parameters outside of any module's forward."""
    return op.module is None and plain(op.name) in _EXPLICIT


def reaches_loss(trace: Trace, parameter: Parameter) -> bool:
    """Whether a way that gradients can come back along leads from a parameter to the loss."""
    roots = {op.seq for op in trace.backward_roots}
    waiting = [op for op in trace.users_of_parameter.get(parameter.id, []) if needs_gradient(op)]
    seen: set[int] = set()
    while waiting:
        op = waiting.pop()
        if op.seq in roots:
            return True
        if op.seq not in seen:
            seen.add(op.seq)
            waiting.extend(later for later in trace.consumers.get(op.seq, []) if needs_gradient(later))
    return False


def find_flat_operation(trace: Trace, parameter: Parameter) -> Op | None:
    """An operation of zero derivative between a parameter and the loss, inside of a module."""
    reached = trace.descendants(trace.users_of_parameter.get(parameter.id, [])) & trace.loss_ancestors
    for seq in sorted(reached):
        op = trace.ops[seq]
        if is_in(op, ZERO_DERIVATIVE) and needs_gradient(op) and op.module is not None:
            return op
    return None


def _described(trace: Trace, op: Op) -> Cut:
    name = plain(op.name)
    if name in _EXPLICIT:
        where = line_of(trace.run, op)
        text = either(trace.run, pytorch=f".{name}" + ("()" if name == "detach" else ""), mindspore="stop_gradient")
        return Cut(f"by {text} at {where}", f"Remove {text} at {where}.", where, _module_name(trace, op), 0.97)
    if is_in(op, COPIES_VALUES | LEAVES_FRAMEWORK):
        where = line_of(trace.run, op)
        fix = f"Keep the tensor itself instead of {name} at {where}."
        return Cut(f"by `{name}` at {where}, which copies values only", fix, where, _module_name(trace, op), 0.95)
    if any(output.get("dtype", "").startswith(("int", "bool", "uint")) for output in op.outputs):
        where = line_of(trace.run, op)
        fix = f"Use a differentiable operation instead of {name}."
        return Cut(f"by `{name}` at {where}, which has no derivative", fix, where, _module_name(trace, op), 0.95)
    where, module = _outermost_without_gradient(trace, op)
    return Cut(
        f"because `{module or name}` is computed with gradients switched off at {where}",
        either(
            trace.run,
            pytorch=f"Take {where} out of torch.no_grad() (or inference_mode) in training.",
            mindspore=f"Move {where} into the function that is differentiated (value_and_grad).",
        ),
        where,
        module,
        0.97,
    )


def _module_name(trace: Trace, op: Op) -> str | None:
    module = trace.run.modules.get(op.module) if op.module is not None else None
    return module.name if module is not None and module.path else None


def _outermost_without_gradient(trace: Trace, op: Op) -> tuple[Location | None, str | None]:
    """The call that the no-gradient region was put around: of the largest module with no gradient in any of its operations."""
    where, name, current = line_of(trace.run, op), _module_name(trace, op), op.module
    while current is not None and trace.run.modules[current].path:
        module = trace.run.modules[current]
        inside = {m.id for m in trace.run.modules.values() if m.root == module.root and is_within(m.path, module.path)}
        if any(needs_gradient(other) for other in trace.ops.values() if other.module in inside):
            break
        if module.called is not None:
            where, name = module.called.of_module(module.name), module.name
        current = parent_of(trace.run, current)
    return where, name


def _round_trip(trace: Trace, reached: set[int]) -> Cut | None:
    """Values that left the framework, after which the network goes on with a tensor of unknown origin and the same first axis."""
    for seq in sorted(reached):
        out = trace.ops[seq]
        source = next(iter(trace.sources(out)), None)
        if not is_in(out, _LEAVES_WITH_VALUES) or source is None or not shape_of(source):
            continue
        if any(_comes_back(trace.ops[later], out, shape_of(source)[0]) for later in trace.loss_ancestors):
            where, name = line_of(trace.run, out), plain(out.name)
            return Cut(
                f"by a round trip through `{name}` at {where}",
                f"Stay with tensors: compute with the framework's operations instead of {name} at {where}.",
                where,
                _module_name(trace, out),
                0.88,
            )
    return None


def _comes_back(later: Op, out: Op, size: int) -> bool:
    unknown = "t" in later.inputs or (is_in(later, COPIES_VALUES) and not any(r.startswith("o") for r in later.inputs))
    inside = later.module is not None and out.module is not None
    return later.seq > out.seq and later.step == out.step and unknown and inside and shape_of(later)[:1] == (size,)


def _cut_between_roots(trace: Trace, parameter: Parameter) -> Cut | None:
    """A module called with gradients off whose output went into a call with gradients on."""
    run = trace.run
    by_seq = {call.seq: call for call in run.root_calls}
    for call in run.root_calls:
        source = by_seq.get(call.fed_by) if call.fed_by is not None else None
        if source is None or source.grad or not call.grad or call.loss:
            continue
        module, owner = run.modules[source.module], run.modules[parameter.module]
        if owner.root == module.root and is_within(owner.path, module.path):
            where = source.location
            return Cut(
                f"because `{module.name}` is called with gradients switched off at {where}",
                either(
                    run,
                    pytorch=f"Take the call at {where} out of torch.no_grad() in training.",
                    mindspore=f"Move the call at {where} into the function that is differentiated (value_and_grad).",
                ),
                None if where is None else where.of_module(module.name),
                module.name,
                0.95,
            )
    return None


def scores_layer(trace: Trace) -> set[int]:
    """Parameters of the last layer before the loss: those that the first parametrised operations behind the loss take."""
    found: set[int] = set()
    for root in trace.backward_roots:
        waiting, seen = [root], set()
        while waiting:
            op = waiting.pop(0)
            if op.seq in seen:
                continue
            seen.add(op.seq)
            taken = [int(r[1:]) for r in op.inputs if r.startswith("p") and r[1:].isdigit()]
            matrices = [p for p in taken if p in trace.run.parameters and len(trace.run.parameters[p].shape) > 1]
            if matrices:
                found.update(taken)
            else:
                waiting.extend(trace.sources(op))
    return found


def takes_trained_values(trace: Trace, parameter: Parameter) -> bool:
    """Whether what the parameter is applied to depends on trainable parameters."""
    for op in trace.users_of_parameter.get(parameter.id, []):
        if any(needs_gradient(source) for source in trace.sources(op)) and shape_of(op):
            return True
    return False
