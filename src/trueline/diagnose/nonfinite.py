"""The first NaN or infinite value of a run: at which step, in which phase, in which module, on which line."""

from __future__ import annotations

import math

from trueline.model import Location, NonFinite, Step, TensorStat
from trueline.store import Run


def first_nonfinite(run: Run) -> NonFinite | None:
    """None when every step was finite.

    Infinite gradients at a step whose loss is finite are passed over where a gradient scaler guards the step: finding
    its scale by overflowing now and then is how a scaler works.
    """
    scaled = {event.step for event in run.events_of("scale", "scaler_step")}
    for step in run.steps:
        if step.finite or (_is_finite(step.loss) and step.id in scaled):
            continue
        if not _is_finite(step.loss):
            return _in_update(run, step) or _in_forward(run, step)
        return _in_update(run, step) or _in_backward(run, step)
    return None


def _is_finite(value: float | None) -> bool:
    return value is None or math.isfinite(value)


def _in_update(run: Run, step: Step) -> NonFinite | None:
    """Weights that are not finite before this step's own update were spoilt by the update before it."""
    spoilt = _nonfinite_stats(run, "parameter", step.id)
    if not spoilt or step.id == 0:
        return None
    parameter = run.parameters[spoilt[0].subject]
    module = run.modules[parameter.module].name
    return NonFinite(step.id - 1, "update", module, None, _line_of_event(run, "optimizer_step", step.id - 1, module))


def _in_forward(run: Run, step: Step) -> NonFinite:
    # Children finish before their parents, so the first output that is not finite belongs to the innermost module.
    for stat in _nonfinite_stats(run, "output", step.id):
        module = run.modules[stat.subject]
        location = module.called.of_module(module.name) if module.called else None
        return NonFinite(step.id, "forward", module.name, None, location)
    calls = run.loss_calls
    call = next(
        (call for call in calls if call.step == step.id and not (call.value is not None and math.isfinite(call.value))), None
    )
    if call is not None:
        return NonFinite(step.id, "forward", None, call.kind, call.location)
    return NonFinite(step.id, "forward", None, None, _line_of_loss(run, step.id) or _line_of_event(run, "backward", step.id))


def _in_backward(run: Run, step: Step) -> NonFinite:
    # The backward pass goes from the last module to the first: where it went wrong is the one nearest to the loss.
    name = None
    at_outputs = _nonfinite_stats(run, "output_grad", step.id)
    at_parameters = _nonfinite_stats(run, "gradient", step.id)
    if at_outputs:
        name = run.modules[at_outputs[0].subject].name
    elif at_parameters:
        name = run.modules[run.parameters[at_parameters[-1].subject].module].name
    return NonFinite(step.id, "backward", name, None, _line_of_event(run, "backward", step.id, name))


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


def _line_of_event(run: Run, kind: str, step: int, module: str | None = None) -> Location | None:
    """The line of the event at this step; loops run the same line at every step, so an earlier one will do."""
    lines = [event.location for event in run.events_of(kind) if event.step <= step and event.location is not None]
    return lines[-1].of_module(module) if lines else None
