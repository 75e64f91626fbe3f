"""The log of a gradient scaler: at every step the loss, the scale, and whether gradients overflowed and the step was left out."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from trueline.report.json import json_document
from trueline.report.words import many, number
from trueline.store import Run

SCHEMA = "trueline.scaler/1"
# In a longer log, steps in a row at which nothing happens to the scale share a line.
_MOST_LINES = 60
_MOST_DIGITS = 1e10


class ScalerStep(msgspec.Struct, frozen=True):
    """One step. `scale` is what its loss was multiplied by, None where it lived on a device; `overflow` says that the scaler
    found gradients that are not finite, so that no parameter was changed."""

    step: int
    loss: float | None
    overflow: bool
    scale: float | None


def scaler_log(run: Run) -> list[ScalerStep]:
    """All steps of a run whose loss was scaled; empty where none was."""
    scales = {event.step: event.value for event in run.events_of("scaler_step", "unscale")}
    # The scale itself says more than what undoes it, which may come after an update.
    scales |= {event.step: event.value for event in run.events_of("scale")}
    overflowed = {event.step for event in run.events_of("optimizer_step") if event.detail.get("skipped")}
    return [ScalerStep(step.id, step.loss, step.id in overflowed, scales[step.id]) for step in run.steps if step.id in scales]


def scaler_json(run: Run) -> bytes:
    """The log as a document, indented, ending in a newline. NaN and infinity become null, as JSON has neither."""
    log = scaler_log(run)
    document = {
        "schema": SCHEMA,
        "run": run.info.name,
        "overflows": sum(step.overflow for step in log),
        "steps": [
            {"step": each.step, "loss": _finite(each.loss), "overflow": each.overflow, "scale": _finite(each.scale)}
            for each in log
        ],
    }
    return json_document(document)


def print_scaler(console: Console, run: Run) -> None:
    log = scaler_log(run)
    console.print()
    console.print(Text("Gradient scaler", style="bold"))
    if not log:
        console.print(" No loss was scaled in this run: no gradient scaler was used, or none that is known.")
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), collapse_padding=True)
    for column in ("step", "loss", "overflow", "scale"):
        table.add_column(column, justify="left" if column == "overflow" else "right", no_wrap=True)
    for first, last in _lines(log):
        told = str(first.step) if first is last else f"{first.step}–{last.step}"
        table.add_row(
            told, number(last.loss), "left out" if last.overflow else "", _whole(last.scale),
            style="bold red" if last.overflow else "",
        )  # fmt: skip
    console.print(table)
    overflows = sum(step.overflow for step in log)
    console.print(f" {many(overflows, 'step')} of {number(len(log))} left out because gradients were not finite.")


def _lines(log: list[ScalerStep]) -> Iterator[tuple[ScalerStep, ScalerStep]]:
    """First and last step of each line of the table."""
    if len(log) <= _MOST_LINES:
        yield from ((step, step) for step in log)
        return
    first = last = log[0]
    for step in log[1:]:
        if step.overflow or last.overflow or step.scale != last.scale or step.step != last.step + 1:
            yield first, last
            first = step
        last = step
    yield first, last


def _whole(scale: float | None) -> str:
    """Scales are powers of two, and known by their digits."""
    return f"{scale:,.0f}" if scale is not None and 1 <= scale < _MOST_DIGITS and scale == int(scale) else number(scale)


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None
