"""The first NaN or infinite value of a run: at which step, in which phase, in which module and operation, on which line."""

from __future__ import annotations

import math

from trueline.model import Batch, Location, NonFinite, Op, Step, TensorStat
from trueline.store import Run
from trueline.views.dataflow import Trace, line_of, needs_gradient, plain

_DIVISIONS = frozenset("div truediv true_divide divide".split())
# Operations that have no finite value somewhere: at zero, below it, or for large arguments.
_RISKY = _DIVISIONS | frozenset(
    "log log2 log10 log1p sqrt rsqrt exp expm1 pow float_power reciprocal acos asin atanh norm vector_norm cosh sinh prod".split()
)
_BOUNDS = frozenset("clamp clip clamp_min clamp_max clamp_ maximum minimum where sigmoid tanh softplus nan_to_num".split())
_LARGEST_EPSILON = 0.1
# Operations whose derivative has no finite value somewhere although they have one themselves: at zero, at one, at equal points.
_STEEP = frozenset(
    "sqrt rsqrt pow norm vector_norm acos asin atanh log log2 log10 log1p div truediv true_divide divide reciprocal cdist "
    "pairwise_distance std atan2 exp expm1 xlogy float_power normalize cosine_similarity prod".split()
)
# Operations whose result may be larger than all that went in: in float16 they end at 65504.
GROWING = frozenset("mul sum matmul bmm mm linear conv1d conv2d conv3d pow square add einsum cumsum prod exp".split())
_RARE = 0.05


def first_nonfinite(run: Run) -> NonFinite | None:
    """None when every step was finite.

    Infinite gradients at a step whose loss is finite are passed over where a gradient scaler guards the step: finding its scale
    by overflowing now and then is how a scaler works. So is a loss that overflows at few of such steps.
    """
    scaled = {event.step for event in run.events_of("scale", "scaler_step")}
    lost = [step for step in run.steps if not _is_finite(step.loss) and step.id in scaled]
    tolerated = set(scaled) if len(lost) <= _RARE * len(run.steps) else set()
    for step in run.steps:
        if step.finite or (step.id in scaled and (_is_finite(step.loss) or step.id in tolerated)):
            continue
        if not _is_finite(step.loss):
            return _in_update(run, step) or _in_forward(run, step)
        return _in_update(run, step) or _in_backward(run, step)
    return None


def fed_nonfinite(run: Run, step: int) -> Batch | None:
    """The batch of this step, when there were NaN or infinite values in it before the model saw it."""
    fed = {call.batch for call in run.root_calls if call.step == step and call.grad}
    return next((batch for batch in run.batches if batch.nonfinite and (batch.seq in fed or batch.step == step)), None)


def _is_finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def suspects(run: Run) -> list[Op]:
    """The traced operations on the way to the loss that can leave the finite numbers and that nothing keeps from it (a small
    constant added, a clamp), in the order of the forward pass."""
    trace = Trace(run)
    behind = trace.loss_ancestors
    latest = max((op.step for op in run.ops if op.seq in behind), default=None)
    return [
        op
        for op in run.ops
        if op.step == latest
        and op.seq in behind
        and plain(op.name) in _RISKY
        and needs_gradient(op)
        and not _is_guarded(trace, op)
    ]


def _is_guarded(trace: Trace, op: Op) -> bool:
    """Whether its argument (for a division: the denominator) is kept in bounds, or the operation is harmless by its settings."""
    numbers = [value for value in op.settings.get("args") or [] if isinstance(value, int | float)]
    name = plain(op.name)
    if name in _DIVISIONS and len(op.inputs) < 2 and numbers:
        return numbers[0] != 0
    if name in ("pow", "float_power") and numbers and numbers[0] >= 1:
        return True
    if not op.inputs:
        return False
    source = trace.producer(op.inputs[-1] if name in _DIVISIONS else op.inputs[0])
    if source is None:
        return False
    made_by = plain(source.name)
    added = [value for value in source.settings.get("args") or [] if isinstance(value, int | float)]
    if name in ("exp", "expm1"):
        # Subtracting a tensor (the maximum) is how an exponential is kept from overflowing.
        return made_by in _BOUNDS or (made_by == "sub" and len(source.inputs) > 1) or made_by == "neg"
    return made_by in _BOUNDS - {"sigmoid", "tanh"} or (
        made_by == "add" and any(0 < value <= _LARGEST_EPSILON for value in added)
    )


def _in_update(run: Run, step: Step) -> NonFinite | None:
    """Weights that are not finite before this step's own update were spoilt by the update before it."""
    spoilt = _nonfinite_stats(run, "parameter", step.id)
    if not spoilt or step.id == 0:
        return None
    parameter = run.parameters[spoilt[0].subject]
    module = run.modules[parameter.module].name
    return NonFinite(step.id - 1, "update", module, None, _line_of_event(run, "optimizer_step", step.id - 1, module))


def _in_forward(run: Run, step: Step) -> NonFinite:
    if fed_nonfinite(run, step.id) is not None:
        return NonFinite(step.id, "forward", None, None, _line_of_call(run, step.id))
    # Children finish before their parents, so the first output that is not finite belongs to the innermost module.
    for stat in _nonfinite_stats(run, "output", step.id):
        module = run.modules[stat.subject]
        op = _between(run, step.id, module.id, suspects(run))
        half = _half_overflow(run, stat)
        if half is not None and (op is None or (half.seq < op.seq and not stat.nan)):
            op = half
        if op is not None:
            return _at_operation(run, step.id, op)
        location = module.called.of_module(module.name) if module.called else None
        return NonFinite(step.id, "forward", module.name, None, location)
    calls = run.loss_calls
    call = next(
        (call for call in calls if call.step == step.id and not (call.value is not None and math.isfinite(call.value))), None
    )
    if call is not None:
        return NonFinite(step.id, "forward", None, call.kind, call.location)
    op = next(iter(suspects(run)), None)
    if op is not None:
        return _at_operation(run, step.id, op)
    return NonFinite(step.id, "forward", None, None, _line_of_loss(run, step.id) or _line_of_event(run, "backward", step.id))


def _at_operation(run: Run, step: int, op: Op) -> NonFinite:
    name = run.modules[op.module].name if op.module is not None and op.module in run.modules else None
    return NonFinite(step, "forward", name, plain(op.name), line_of(run, op))


def _half_overflow(run: Run, stat: TensorStat) -> Op | None:
    """The first operation in float16 that can have made this output infinite."""
    behind = Trace(run).loss_ancestors
    latest = max((op.step for op in run.ops if op.seq in behind), default=None)
    growing = [
        op
        for op in run.ops
        if op.step == latest
        and op.seq in behind
        and plain(op.name) in GROWING
        and any(output.get("dtype") == "float16" for output in op.outputs)
    ]
    return _between(run, stat.step, stat.subject, growing)


def _between(run: Run, step: int, module: int, found: list[Op]) -> Op | None:
    """The first of these operations between the last module whose output was still finite and the first whose output was not."""
    finite = set()
    for stat in run.stats("output"):
        if stat.step == step:
            if stat.subject == module:
                break
            finite.add(stat.subject)
    last_of = {op.module: op.seq for op in run.ops}
    if module not in last_of:
        return None
    start = max((op.seq for op in run.ops if op.module in finite and found and op.step == found[0].step), default=-1)
    return next((op for op in found if start < op.seq <= last_of[module]), None)


def _in_backward(run: Run, step: Step) -> NonFinite:
    # What overflowed float16 and did not reach the loss, behind a tanh for one, spoils the gradients.
    for stat in _nonfinite_stats(run, "output", step.id)[:1]:
        half = _half_overflow(run, stat)
        if half is not None:
            return _at_operation(run, step.id, half)
    # The backward pass goes from the last module to the first: where it went wrong is the one nearest to the loss.
    at_outputs = _nonfinite_stats(run, "output_grad", step.id)
    at_parameters = _nonfinite_stats(run, "gradient", step.id)
    # Where this step was not sampled, the weights that its update spoilt tell which gradients were not finite.
    after = _nonfinite_stats(run, "parameter", step.id + 1)
    nearest = None
    if at_outputs:
        nearest = at_outputs[0].subject
    elif at_parameters or after:
        spoilt = {run.parameters[stat.subject].module for stat in (at_parameters or after) if stat.subject in run.parameters}
        nearest = _last_in_forward_order(run, spoilt)
    name = run.modules[nearest].name if nearest is not None else None
    op = _steep_after(run, nearest) if nearest is not None else None
    if op is not None:
        return NonFinite(step.id, "backward", name, plain(op.name), line_of(run, op))
    return NonFinite(step.id, "backward", name, None, _line_of_event(run, "backward", step.id, name))


def _last_in_forward_order(run: Run, modules: set[int]) -> int | None:
    last = {op.module: op.seq for op in run.ops if op.module in modules}
    if last:
        return max(last, key=lambda module: last[module])
    return max(modules, default=None)


def _steep_after(run: Run, module: int) -> Op | None:
    """The operation nearest to a module, on the way from its output to the loss, whose derivative can be infinite."""
    trace = Trace(run)
    inside = [op for op in run.ops if op.module == module]
    if not inside:
        return None
    last = inside[-1]
    later = trace.descendants([last]) & trace.loss_ancestors
    return next(
        (op for seq in sorted(later) if seq > last.seq and _is_steep(op := trace.ops[seq]) and not _is_guarded(trace, op)),
        None,
    )


def _is_steep(op: Op) -> bool:
    """Whether the derivative of an operation can be infinite: powers from 1 on are smooth, and so is a division by a number."""
    name = plain(op.name)
    if name not in _STEEP:
        return False
    numbers = [value for value in op.settings.get("args") or [] if isinstance(value, int | float)]
    if name in ("pow", "float_power") and numbers:
        return numbers[0] < 1
    return not (name in _DIVISIONS and numbers and len(op.inputs) < 2)


def _nonfinite_stats(run: Run, role: str, step: int) -> list[TensorStat]:
    """Statistics of this step with NaN or Inf in them, without the tensors that held infinities while all was well
    (an attention mask of -inf, for one)."""
    harmless = set()
    found = []
    for stat in run.stats(role):
        if stat.nan or stat.inf:
            if stat.step < step:
                harmless.add(stat.subject)
            elif stat.step == step and (stat.nan or stat.subject not in harmless):
                found.append(stat)
    return found


def _line_of_loss(run: Run, step: int) -> Location | None:
    """Where the value that this step's backward pass started from is computed, as seen at a step that was traced."""
    backward = _line_of_event(run, "backward", step)
    operations = {f"o{op.seq}": op for op in run.ops}
    traced = [operations.get(event.detail.get("of") or "") for event in run.events_of("backward") if event.location == backward]
    return next((op.location for op in traced if op is not None), None)


def _line_of_call(run: Run, step: int) -> Location | None:
    """Where the model was called at this step."""
    lines = [call.location for call in run.root_calls if call.step == step and call.grad and not call.loss]
    return next((line for line in lines if line is not None), None)


def _line_of_event(run: Run, kind: str, step: int, module: str | None = None) -> Location | None:
    """The line of the event at this step; loops run the same line at every step, so an earlier one will do."""
    lines = [event.location for event in run.events_of(kind) if event.step <= step and event.location is not None]
    return lines[-1].of_module(module) if lines else None
