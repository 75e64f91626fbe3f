"""A recorded run at a glance: what ran, how it ended, its loss curve, hyper-parameters and loaders."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from trueline.model import Event, HyperParameter, Location, Step
from trueline.report.curve import draw_curve
from trueline.report.terminal import how_it_ended
from trueline.report.words import many, number, seconds, size
from trueline.store import Run, size_of

_MOST_CHANGES = 6


def print_summary(console: Console, run: Run) -> None:
    """Everything but modules, single steps and events."""
    console.print(_header(run))
    if run.steps:
        _heading(console, "Loss")
        ascii_only = not (console.encoding or "").lower().startswith("utf")
        losses = [step.loss for step in run.steps]
        for line in draw_curve(losses, width=console.width - 2, ascii_only=ascii_only):
            console.print(Text(f" {line}"), no_wrap=True, crop=True)
    if run.hyperparameters:
        _heading(console, "Hyper-parameters")
        console.print(_hyperparameters(run))
    if run.loaders:
        _heading(console, "Loaders")
        console.print(_loaders(run))


def print_steps(console: Console, steps: list[Step]) -> None:
    table = _table("step", "loss", "gradient norm", "time", "waiting", "sampled", right=5)
    for step in steps:
        style = "" if step.finite else "bold red"
        table.add_row(
            str(step.id), number(step.loss), number(step.grad_norm), seconds(step.seconds), seconds(step.wait),
            "yes" if step.sampled else "", style=style,
        )  # fmt: skip
    _heading(console, "Steps")
    console.print(table)


def print_events(console: Console, run: Run, events: list[Event]) -> None:
    """The happenings in their order; equal ones in a row (the same line at every step) are shown once with their count."""
    table = _table("step", "event", "value", "where", "detail")
    for first, last, count in _repeats(events):
        steps = str(first.step) if first.step == last.step else f"{first.step}–{last.step}"
        detail = ", ".join(f"{key}={number(value)}" for key, value in first.detail.items()) if count == 1 else f"{count} times"
        subject = _subject(run, first)
        table.add_row(
            steps, f"{first.kind}{f' of {subject}' if subject else ''}", number(first.value), _where(first.location), detail
        )
    _heading(console, "Events")
    console.print(table)


def _header(run: Run) -> RenderableType:
    info = run.info
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="bold", no_wrap=True)
    rows.add_column(overflow="fold")
    ended = how_it_ended(info)
    frameworks = ", ".join(f"{name} {version}" for name, version in info.frameworks.items()) or "none"
    rows.add_row("Run", Text(info.name, style="bold cyan"))
    rows.add_row("Command", Text(shlex.join(info.command)))
    rows.add_row("Status", Text(ended, style="yellow") if ended else Text(info.status, style="green"))
    rows.add_row("Started", f"{info.started} in {info.cwd}")
    rows.add_row("With", f"Python {info.python}, {frameworks}, trueline {info.trueline}")
    rows.add_row("Steps", _pace(run))
    if len(run.ranks) > 1:
        rows.add_row("Ranks", f"{len(run.ranks)}, seen from rank {run.rank}")
    rows.add_row("On disk", f"{size(size_of(run.directory))} in {run.directory}")
    if info.recorder_error:
        rows.add_row("Recorder", Text(info.recorder_error, style="bold red"))
    return rows


def _pace(run: Run) -> str:
    if not run.steps:
        return "none: the script did not train, or ended before its first step was complete"
    # The first step pays for set-up; it would spoil the median of a short run only.
    times = sorted(step.seconds for step in (run.steps[1:] or run.steps))
    waits = sum(step.wait for step in run.steps) / max(1e-9, sum(step.seconds for step in run.steps))
    pace = f"{number(len(run.steps))}, {seconds(times[len(times) // 2])} each (median)"
    if run.info.seconds is not None:
        pace += f", {seconds(run.info.seconds)} in all"
    return pace + (f", {waits:.0%} of the time waiting for data" if waits >= 0.01 else "")


def _hyperparameters(run: Run) -> Table:
    """The current value of each hyper-parameter, and how it came there."""
    histories: dict[tuple[int, int, str], list[HyperParameter]] = {}
    for value in run.hyperparameters:
        histories.setdefault((value.optimizer, value.group, value.name), []).append(value)
    several_groups = {optimizer for optimizer, group, _ in histories if group > 0}
    table = _table("optimizer", "name", "now", "changes")
    previous = None
    for (key, group, name), history in histories.items():
        optimizer = run.optimizers.get(key)
        owner = f"{optimizer.type if optimizer else key}{f' group {group}' if key in several_groups else ''}"
        if optimizer and optimizer.built and group == 0:
            owner += f" ({optimizer.built})"
        table.add_row("" if owner == previous else owner, name, number(history[-1].value), _changes(history))
        previous = owner
    return table


def _changes(history: list[HyperParameter]) -> str:
    if len(history) == 1:
        return ""
    shown = [f"{number(value.value)} (step {value.step})" for value in history]
    if len(shown) > _MOST_CHANGES:
        left_out = len(shown) - _MOST_CHANGES
        shown = [*shown[:3], f"… {many(left_out, 'more change')} …", *shown[-3:]]
    return " → ".join(shown)


def _loaders(run: Run) -> Table:
    fetched: dict[int, int] = {}
    for batch in run.batches:
        if batch.loader is not None:
            fetched[batch.loader] = fetched.get(batch.loader, 0) + 1
    table = _table("dataset", "samples", "batch", "sampler", "fetched", "built", "settings")
    for loader in run.loaders.values():
        settings = ", ".join(f"{key}={value}" for key, value in loader.settings.items() if value)
        table.add_row(
            loader.dataset, number(loader.length), number(loader.batch_size), loader.sampler or "–",
            many(fetched.get(loader.id, 0), "batch").replace("batchs", "batches"), _where(loader.built), settings,
        )  # fmt: skip
    return table


def _repeats(events: Iterable[Event]) -> list[tuple[Event, Event, int]]:
    """First, last and count of the events that share kind, subject and line, in the order of their first appearance."""
    groups: dict[tuple[str, int | None, str], list[Event]] = {}
    for event in events:
        groups.setdefault((event.kind, event.subject, _where(event.location)), []).append(event)
    return [(group[0], group[-1], len(group)) for group in groups.values()]


def _subject(run: Run, event: Event) -> str:
    if event.subject is None:
        return ""
    if event.kind == "mode" and event.subject in run.modules:
        return run.modules[event.subject].name
    if event.kind in {"zero_grad", "optimizer_step"} and event.subject in run.optimizers:
        return run.optimizers[event.subject].type
    return ""


def _where(location: Location | None) -> str:
    return "" if location is None else str(location)


def _heading(console: Console, words: str) -> None:
    console.print()
    console.print(Text(words, style="bold"))


def _table(*columns: str, right: int = 0) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), collapse_padding=True)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index < right else "left", overflow="fold")
    return table
