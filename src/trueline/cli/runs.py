"""`trueline runs`: list, delete and prune the recorded runs."""

from __future__ import annotations

import shlex
import sys
from datetime import datetime, timedelta
from pathlib import Path

import click
from rich import box
from rich.table import Table
from rich.text import Text

from trueline.errors import TruelineError
from trueline.model import RunInfo
from trueline.report.console import output_console, say
from trueline.report.words import many, number, seconds, size
from trueline.store import delete_run, find_run, last_step, list_runs, runs_folder, size_of

_WIDTH_OF_NUMBERS = 50
_STYLES = {"finished": "green", "running": "cyan"}


@click.group("runs", invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the recorded runs; delete some; prune old ones."""
    if ctx.invoked_subcommand is None:
        _list()


@command.command("list")
def list_command() -> None:
    """List the recorded runs, the newest last."""
    _list()


@command.command("delete")
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def delete_command(names: tuple[str, ...]) -> None:
    """Delete runs by name, or by how that begins."""
    # All names are looked up before any run is gone: a typing error must not leave half of the work done.
    _delete(list(dict.fromkeys(find_run(name) for name in names)))


@command.command("prune")
@click.option("--keep", metavar="N", type=click.IntRange(min=0), help="Delete all but the N newest runs.")
@click.option("--older-than", "days", metavar="DAYS", type=click.FloatRange(min=0), help="Delete runs older than that.")
@click.option("--yes", is_flag=True, help="Do not ask.")
def prune_command(keep: int | None, days: float | None, yes: bool) -> None:
    """Delete old runs. Runs that are still being recorded are kept."""
    if (keep is None) == (days is None):
        raise TruelineError("Give one of --keep N and --older-than DAYS, as in: trueline runs prune --keep 10")
    runs = list_runs()
    if keep is not None:
        old = runs[: max(0, len(runs) - keep)]
    else:
        old = [each for each in runs if _age(each[1]) > timedelta(days=days or 0)]
    doomed = [directory for directory, info in old if info.status != "running"]
    if not doomed:
        say(f"Nothing to prune in {runs_folder()}.")
        return
    if not yes:
        for directory in doomed:
            say(directory.name)
        if not sys.stdin.isatty():
            raise TruelineError(
                f"Prune would delete {many(len(doomed), 'run')}, and there is no terminal to ask on. Confirm with: --yes"
            )
        click.confirm(f"Delete {many(len(doomed), 'run')}?", abort=True)
    _delete(doomed)


def _list() -> None:
    runs = list_runs()
    console = output_console()
    if not runs:
        console.print(f"No runs in {runs_folder()}. Record one with: trueline run SCRIPT", soft_wrap=True)
        return
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, padding=(0, 1), collapse_padding=True)
    table.add_column("run", overflow="fold")
    table.add_column("status", no_wrap=True)
    for name in ("steps", "last loss", "time", "size"):
        table.add_column(name, justify="right", no_wrap=True)
    # Names are there to be copied: the command gives way to them.
    room = console.width - max(len(directory.name) for directory, _ in runs) - _WIDTH_OF_NUMBERS
    if room >= 8:
        table.add_column("command", overflow="ellipsis", no_wrap=True, max_width=room)
    for directory, info in runs:
        count, loss = last_step(directory) or (0, None)
        cells: list[str | Text] = [
            directory.name, Text(info.status, style=_STYLES.get(info.status, "yellow")), number(count), number(loss),
            seconds(info.seconds), size(size_of(directory)), shlex.join(info.command),
        ]  # fmt: skip
        table.add_row(*cells[: len(table.columns)])
    console.print(table)


def _delete(directories: list[Path]) -> None:
    freed = sum(size_of(directory) for directory in directories)
    for directory in directories:
        delete_run(directory)
    # A run may have been named by how its name begins.
    named = f": {directories[0].name}" if len(directories) == 1 else ""
    say(f"Deleted {many(len(directories), 'run')} ({size(freed)}){named}.")


def _age(info: RunInfo) -> timedelta:
    started = datetime.fromisoformat(info.started)
    return datetime.now(started.tzinfo) - started
