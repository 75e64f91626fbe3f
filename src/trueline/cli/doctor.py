"""`trueline doctor`: whether this environment can record and check, found out by trying."""

from __future__ import annotations

import platform
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import click
import msgspec
from rich.table import Table
from rich.text import Text

import trueline
from trueline import limits
from trueline.reading import read_whole, reading
from trueline.report.console import output_console
from trueline.report.words import size
from trueline.store import FAILURES_FILE, Writer, find_run, last_step, runs_folder
from trueline.store.format import database_file

_FRAMEWORKS = ("torch", "mindspore")
_COMPANIONS = ("lightning", "pytorch-lightning", "transformers", "accelerate", "torchvision")
_ENOUGH_DISK = 200_000_000
_ELSEWHERE = "Set TRUELINE_RUNS to a folder on a local disk."


class Point(msgspec.Struct, frozen=True):
    """One thing that was looked at. `advice` is what to do about it; a point with advice is a problem."""

    subject: str
    state: str
    advice: str = ""


@click.command("doctor")
@click.option("--last", is_flag=True, help="Print the tracebacks of what failed while the last run was recorded instead.")
@click.pass_context
def command(ctx: click.Context, last: bool) -> None:
    """Examine the environment. Exit code: 0 all is well, 1 there is something to put right.

    With --last: what failed inside of the recorder while the last run was recorded, with its tracebacks; 1 where anything did.
    """
    if last:
        ctx.exit(_print_failures(find_run("latest")))
    points = list(examine())
    console = output_console()
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for point in points:
        mark = Text("✗ ", style="bold red") if point.advice else Text("✓ ", style="green")
        table.add_row(mark + Text(point.subject), Text(point.state))
        if point.advice:
            table.add_row("", Text(point.advice, style="yellow"))
    console.print(table)
    problems = sum(bool(point.advice) for point in points)
    console.print()
    console.print(Text(f"{problems} to put right.", style="bold red") if problems else Text("All is well.", style="bold green"))
    ctx.exit(1 if problems else 0)


def _print_failures(directory: Path) -> int:
    console = output_console()
    path = directory / FAILURES_FILE
    if not path.exists():
        console.print(Text(f"Nothing failed while {directory.name} was recorded.", style="green"))
        return 0
    with reading(path):
        text = read_whole(path, limits.NOTES_BYTES).decode(errors="replace")
    console.print(Text(f"While {directory.name} was recorded, these failed; the script was not touched by it:"))
    console.print()
    for line in text.splitlines():
        console.print(Text(line), soft_wrap=True)
    return 1


def examine() -> Iterator[Point]:
    """All points, in the order in which they are shown. No framework is imported for it."""
    yield Point("Python", f"{platform.python_version()} ({sys.executable})")
    yield Point("trueline", f"{trueline.__version__} ({Path(trueline.__file__).parent})")
    yield from _frameworks()
    yield from _traps(_version("numpy"), _version("mindspore"), _version("pyarrow"))
    yield from _storage(runs_folder())


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _frameworks() -> Iterator[Point]:
    found = {package: version for package in _FRAMEWORKS if (version := _version(package)) is not None}
    for package, version in found.items():
        yield Point(package, version)
    if not found:
        yield Point("framework", "none", "Install PyTorch here, or install Trueline where PyTorch is.")
    companions = [f"{package} {version}" for package in _COMPANIONS if (version := _version(package)) is not None]
    if companions:
        yield Point("on top", ", ".join(companions))
    yield Point("numpy", _version("numpy") or "none")


def _traps(numpy: str | None, mindspore: str | None, pyarrow: str | None) -> Iterator[Point]:
    """Versions that are known not to work together; they fail at import or, worse, later."""
    if mindspore is not None and numpy is not None and _major(numpy) >= 2:
        yield Point(
            "numpy with mindspore", f"numpy {numpy}, mindspore {mindspore}", "MindSpore needs numpy 1: pip install 'numpy<2'"
        )
    if pyarrow is not None and numpy is not None and _major(pyarrow) >= 26 and _major(numpy) < 2:
        yield Point(
            "pyarrow with numpy", f"pyarrow {pyarrow}, numpy {numpy}", "This pyarrow needs numpy 2: pip install 'pyarrow<26'"
        )


def _major(version: str) -> int:
    head = version.partition(".")[0]
    return int(head) if head.isdigit() else 0


def _storage(folder: Path) -> Iterator[Point]:
    """The runs folder, tried out where it is or would be made, without leaving anything there."""
    place = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    if not place.is_dir():
        yield Point("runs folder", f"{place} is not a folder", "Set TRUELINE_RUNS to a folder in which runs can be made.")
        return
    try:
        with tempfile.TemporaryDirectory(dir=place, prefix=".trueline-doctor-") as scratch:
            yield Point("runs folder", f"{folder} is writable")
            yield _record(Path(scratch))
    except OSError as problem:
        yield Point("runs folder", f"{place}: {problem.strerror}", "Make it writable, or set TRUELINE_RUNS to a folder that is.")
    free = shutil.disk_usage(place).free
    yield Point("free disk", size(free), "" if free >= _ENOUGH_DISK else "Recording stops on a full disk: free some space.")


def _record(scratch: Path) -> Point:
    """Make a small record as recording does: append to a journal, read it meanwhile, fold it into a database, read that."""
    version = sqlite3.sqlite_version
    try:
        writer = Writer(scratch, 0)
        writer.commit({"step": [(6, 1, None, 0.5, None, 1, 0.1, 0.0, 0, 1, None, None, None)]})
        seen = last_step(scratch)
        writer.close()
        folded = database_file(scratch, 0).is_file()
        kept = last_step(scratch)
    except (OSError, sqlite3.Error) as problem:
        return Point("SQLite", f"{version}: {problem}", _ELSEWHERE)
    if not folded or seen != (7, 0.5) or kept != seen:
        return Point("SQLite", f"{version}: no record can be made here", _ELSEWHERE)
    return Point("SQLite", f"{version}, a record can be appended, folded and read")
