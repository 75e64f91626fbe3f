"""A recorded run at a glance: what ran, how it ended, its loss curve, hyper-parameters and loaders."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable
from datetime import datetime

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from trueline.diagnose.ending import how_it_ended
from trueline.model import Event, HyperParameter, Location, Step
from trueline.report.curve import draw_curve
from trueline.report.words import many, number, seconds, size
from trueline.store import Run, size_of

_MOST_CHANGES = 6


def print_summary(console: Console, run: Run) -> None:
    """Everything but modules, single steps and events."""
    console.print(_header(run))
    for title, steps in _curves(run):
        _heading(console, title)
        ascii_only = not (console.encoding or "").lower().startswith("utf")
        ends = (steps[0].id, steps[-1].id)
        for line in draw_curve([step.loss for step in steps], width=console.width - 2, ends=ends, ascii_only=ascii_only):
            console.print(Text(f" {line}"), no_wrap=True, crop=True)
    if run.hyperparameters:
        _heading(console, "Hyper-parameters")
        console.print(Padding(_hyperparameters(run), (0, 0, 0, 1), expand=False))
    if run.loaders:
        _heading(console, "Loaders")
        console.print(Padding(_loaders(run), (0, 0, 0, 1), expand=False))


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
    rows.add_row("Started", f"{_local_time(info.started)} in {info.cwd}")
    rows.add_row("With", f"Python {info.python}, {frameworks}, trueline {info.trueline}")
    rows.add_row("Steps", _pace(run))
    if len(run.ranks) > 1:
        rows.add_row("Ranks", f"{len(run.ranks)}, seen from rank {run.rank}")
    rows.add_row("On disk", f"{size(size_of(run.directory))} in {run.directory}")
    if info.recorder_error:
        rows.add_row("Recorder", Text(info.recorder_error, style="bold red"))
    return rows


def _curves(run: Run) -> list[tuple[str, list[Step]]]:
    """The steps of each optimizer, with a title: several optimizers minimise several losses, which share no curve."""
    by_optimizer: dict[int | None, list[Step]] = {}
    for step in run.steps:
        by_optimizer.setdefault(step.optimizer, []).append(step)
    if len(by_optimizer) <= 1:
        return [("Loss", run.steps)] if run.steps else []
    found = []
    for key, steps in by_optimizer.items():
        optimizer = None if key is None else run.optimizers.get(key)
        owner = f"{optimizer.type} ({_where(optimizer.built)})" if optimizer else "steps without an optimizer"
        found.append((f"Loss of {owner}", steps))
    return found


def _local_time(moment: str) -> str:
    """A moment of run.json (kept in UTC) as the clock on the wall showed it."""
    return f"{datetime.fromisoformat(moment).astimezone():%Y-%m-%d %H:%M:%S}"


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
    """One row per parameter group with its current values, one per value that changed. Switches that are off are left out."""
    groups: dict[tuple[int, int], dict[str, list[HyperParameter]]] = {}
    for value in run.hyperparameters:
        groups.setdefault((value.optimizer, value.group), {}).setdefault(value.name, []).append(value)
    rows = _rows()
    for (key, group), histories in groups.items():
        optimizer = run.optimizers.get(key)
        owner = f"{optimizer.type if optimizer else key}{f' group {group}' if (key, 1) in groups else ''}"
        now = {name: history[-1].value for name, history in histories.items()}
        shown = [f"{name} {number(value)}" for name, value in now.items() if value is not None and value is not False]
        rows.add_row(owner, Text(", ".join(shown)), _where(optimizer.built) if optimizer and group == 0 else "")
        for name, history in histories.items():
            if len(history) > 1:
                rows.add_row("", Text(f"{name}: {_changes(history)}", style="dim"), "")
    return rows


def _changes(history: list[HyperParameter]) -> str:
    shown = [f"{number(value.value)} (step {value.step})" for value in history]
    if len(shown) > _MOST_CHANGES:
        left_out = len(shown) - _MOST_CHANGES
        shown = [*shown[:3], f"… {many(left_out, 'more change')} …", *shown[-3:]]
    return " → ".join(shown)


def _loaders(run: Run) -> Table:
    fetched = Counter(batch.loader for batch in run.batches)
    rows = _rows()
    for loader in run.loaders.values():
        words = ["unknown length" if loader.length is None else many(loader.length, "sample")]
        if loader.batch_size is not None:
            words.append(f"batches of {loader.batch_size}")
        words += [loader.sampler] if loader.sampler else []
        words += [f"{key}={value}" for key, value in loader.settings.items() if value and key != "batch_sampler"]
        rows.add_row(loader.dataset, Text(f"{', '.join(words)}; {number(fetched[loader.id])} fetched"), _where(loader.built))
    return rows


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


def _rows() -> Table:
    """Rows of a name, what is to be said of it, and its line."""
    rows = Table.grid(padding=(0, 2))
    rows.add_column(style="cyan", overflow="fold")
    rows.add_column(overflow="fold")
    rows.add_column(style="dim", no_wrap=True)
    return rows


def _table(*columns: str, right: int = 0) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), collapse_padding=True)
    for index, column in enumerate(columns):
        table.add_column(column, justify="right" if index < right else "left", overflow="fold")
    return table
