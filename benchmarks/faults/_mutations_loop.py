"""Faults of the training loop, the optimizer and the learning rate."""

from __future__ import annotations

import ast

from benchmarks.faults._idioms import (
    backward_of,
    calls_within,
    last_name_of_target,
    method_statements,
    optimizer_made,
)
from benchmarks.faults._mutation import Planting, mutation
from benchmarks.faults._source import Edit, Source, keyword


def _steps(source: Source) -> list[ast.Expr]:
    """The plain `optimizer.step()` statements."""
    made = optimizer_made(source)
    return [] if made is None else [statement for statement, _ in method_statements(source, made.name, "step")]


def _clearings(source: Source) -> list[tuple[ast.Expr, ast.Call]]:
    made = optimizer_made(source)
    return [] if made is None else method_statements(source, made.name, "zero_grad")


@mutation("tr.01", "zero_grad removed")
def zero_grad_removed(source: Source) -> list[Planting]:
    clearings = _clearings(source)
    if not clearings or (backward := backward_of(source, clearings[-1][0])) is None:
        return []
    return [Planting([source.remove(statement) for statement, _ in clearings], (backward.lineno,))]


@mutation("tr.01", "zero_grad just before the step")
def zero_grad_before_step(source: Source) -> list[Planting]:
    clearings, steps = _clearings(source), _steps(source)
    if not clearings or len(steps) != 1:
        return []
    start = source.span(steps[0])[0]
    moved = Edit(start, start, f"{source.text_of(clearings[-1][0])}; ")
    return [Planting([*(source.remove(statement) for statement, _ in clearings), moved], (steps[0].lineno,))]


@mutation("tr.01", "zero_grad once per epoch")
def zero_grad_per_epoch(source: Source) -> list[Planting]:
    clearings = _clearings(source)
    if len(clearings) != 1 or (loop := source.loop_of(clearings[0][0])) is None:
        return []
    around = source.parents[loop]
    body = getattr(around, "body", [])
    before = body[body.index(loop) - 1] if loop in body and body.index(loop) > 0 else None
    if not isinstance(before, ast.Expr | ast.Assign):
        return []
    statement = clearings[0][0]
    edits = [source.remove(statement), source.append(before, source.text_of(statement))]
    return [Planting(edits, (before.end_lineno or before.lineno,))]


@mutation("tr.03", "optimizer never stepped")
def step_removed(source: Source) -> list[Planting]:
    steps = _steps(source)
    if len(steps) != 1 or (backward := backward_of(source, steps[0])) is None:
        return []
    return [Planting([source.remove(steps[0])], (backward.lineno,))]


@mutation("tr.03", "backward called twice")
def backward_twice(source: Source) -> list[Planting]:
    found = []
    for step in _steps(source):
        backward = backward_of(source, step)
        if backward is None or backward.args or not isinstance(backward.func, ast.Attribute):
            continue
        owner = source.text_of(backward.func.value)
        text = f"{owner}.backward(retain_graph=True); {owner}.backward()"
        found.append(Planting([source.replace(backward, text)], (backward.lineno,)))
    return found


@mutation("tr.03", "scheduler of epochs stepped per batch")
def scheduler_per_batch(source: Source) -> list[Planting]:
    schedulers = [
        name
        for node in source.nodes
        if isinstance(node, ast.Assign)
        and (name := last_name_of_target(node))
        and source.text_of(node.value).find("lr_scheduler.") >= 0
    ]
    found = []
    for name in schedulers:
        scheduled, steps = method_statements(source, name, "step"), _steps(source)
        if len(scheduled) != 1 or len(steps) != 1:
            continue
        statement, step = scheduled[0][0], steps[0]
        text = source.text_of(statement)
        reachable = text.startswith("self.") or source.function_of(statement) is source.function_of(step)
        if reachable and source.loop_of(statement) is not source.loop_of(step):
            found.append(Planting([source.remove(statement), source.append(step, text)], (step.lineno,)))
    return found


@mutation("tr.02", "optimizer of a copy of the model")
def optimizer_on_copy(source: Source) -> list[Planting]:
    made = optimizer_made(source)
    # A gradient scaler refuses an optimizer without gradients.
    if made is None or source.calls("GradScaler"):
        return []
    edits = [source.replace(made.parameters, f"copy.deepcopy({made.model}).parameters()"), source.importing("copy")]
    return [Planting(edits, (made.call.lineno,))]


@mutation("tr.02", "optimizer of the last layer only")
def optimizer_on_part(source: Source) -> list[Planting]:
    made = optimizer_made(source)
    # Behind loaded weights, training the last layer alone is fine-tuning.
    if made is None or source.calls("load_state_dict"):
        return []
    return [Planting([source.replace(made.parameters, f"list({made.model}.parameters())[-2:]")], (made.call.lineno,))]


def _rate_times(source: Source, factor: float) -> list[Planting]:
    made = optimizer_made(source)
    rate = keyword(made.call, "lr") if made is not None else None
    if made is None or rate is None:
        return []
    value = rate.value
    is_number = isinstance(value, ast.Constant) and isinstance(value.value, float)
    text = f"{float(source.text_of(value)) * factor:g}" if is_number else f"{source.text_of(value)} * {factor:g}"
    return [Planting([source.replace(value, text)], (made.call.lineno,))]


@mutation("hp.01", "learning rate 1000 times too high")
def rate_too_high(source: Source) -> list[Planting]:
    return _rate_times(source, 1e3)


@mutation("hp.01", "learning rate 1000 times too low")
def rate_too_low(source: Source) -> list[Planting]:
    return _rate_times(source, 1e-3)


@mutation("tr.08", "accumulated losses not divided")
def accumulation_not_divided(source: Source) -> list[Planting]:
    found = []
    for backward in source.calls("backward"):
        owner = backward.func.value if isinstance(backward.func, ast.Attribute) else None
        if not isinstance(owner, ast.BinOp) or not isinstance(owner.op, ast.Div):
            continue
        found.append(Planting([source.replace(backward, f"{source.text_of(owner.left)}.backward()")], (backward.lineno,)))
    return found


@mutation("mp.03", "unscale_ before the clip removed")
def unscale_removed(source: Source) -> list[Planting]:
    found = []
    for call in source.calls("unscale_"):
        loop = source.loop_of(call)
        clips = calls_within(loop, "clip_grad_norm_", "clip_grad_value_") if loop is not None else []
        if clips:
            found.append(Planting([source.remove(source.statement_of(call))], (clips[0].lineno,)))
    return found


@mutation("mp.02", "loss scale that overflows for most of the run")
def scale_too_high(source: Source) -> list[Planting]:
    scales = [scale for call in source.calls("GradScaler") if (scale := keyword(call, "init_scale"))]
    lines = tuple(call.lineno for call in source.calls("scale"))
    return [Planting([source.replace(scale.value, "2.0**100")], lines) for scale in scales]
