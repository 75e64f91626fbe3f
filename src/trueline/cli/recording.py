"""Record a script in a process of its own, as `trueline run` does, and wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType

import msgspec

from trueline.cli.progress import Progress
from trueline.cli.script import Script
from trueline.errors import RunExists, RunNotFound, TruelineError
from trueline.rerun import STEPS, rerun_first_steps, why_no_rerun
from trueline.store import RERUN_FOLDER, Run, delete_run, read_info, runs_folder

_STDERR = 2
PYNATIVE = ("--pynative",)
_POLL_SECONDS = 1.0


class Recorded(msgspec.Struct, frozen=True):
    """A recorded run, and the options of `trueline run` that it was recorded with."""

    directory: Path
    options: tuple[str, ...]


def record_script(script: Script, name: str | None, *, graph_mode: bool, output_to_stderr: bool = False) -> Recorded:
    """Run and record the script to its end, whatever that is.

    Graph mode shows little of itself: unless `graph_mode` is to be kept, a script that asks for it is run in PyNative mode, and
    only where it fails so, a second time as it is.

    The script has this process's terminal, standard streams and directory. Ctrl-C is the script's: what it recorded
    until then is still there to be checked. `output_to_stderr` keeps this process's standard output for the report.
    """
    script.check()
    name = _free_name(script.stem, name)
    directory = runs_folder() / name
    if not graph_mode:
        _record(script, directory, PYNATIVE, output_to_stderr=output_to_stderr)
        if not _failed_in_place_of_graph_mode(directory):
            return Recorded(directory, PYNATIVE)
        print("trueline: it failed in PyNative mode; recording it once more in graph mode.", file=sys.stderr)
        delete_run(directory)
    _record(script, directory, (), output_to_stderr=output_to_stderr)
    return Recorded(directory, ())


def _failed_in_place_of_graph_mode(directory: Path) -> bool:
    """Whether a script that asks for graph mode came to grief; in graph mode it may run."""
    if read_info(directory).status != "failed":
        return False
    try:
        run = Run(directory)
    except RunNotFound:
        return False
    try:
        return run.instead_of_graph_mode
    finally:
        run.close()


def _record(script: Script, directory: Path, options: tuple[str, ...], *, output_to_stderr: bool) -> None:
    command = [sys.executable, "-m", "trueline", "run", "--name", directory.name, *options, *script.command]
    sys.stdout.flush()
    with Progress(script.command, directory) as progress, _signals_go_to_the_script() as children:
        child = subprocess.Popen(command, stdout=_STDERR if output_to_stderr else None)  # noqa: S603 - running the user's script is the job
        children.append(child)
        while True:
            try:
                child.wait(_POLL_SECONDS)
                break
            except subprocess.TimeoutExpired:
                progress.update()
    if not directory.is_dir():
        raise TruelineError(
            f"Recording did not start: trueline run ended with exit code {child.returncode} before it made {directory}. "
            "See its message above; trueline doctor examines the environment."
        )


def record_again(script: Script, recorded: Recorded) -> None:
    """Record the script's first steps a second time, into the run's own folder, when that can show something."""
    try:
        run = Run(recorded.directory)
    except RunNotFound:
        return
    try:
        if why_no_rerun(run) is None:
            with Progress.again(min(len(run.steps), STEPS), recorded.directory / RERUN_FOLDER):
                rerun_first_steps(run, [*recorded.options, *script.command])
    finally:
        run.close()


def _free_name(stem: str, name: str | None) -> str:
    """The name that the run will have. One that is made up holds the process id: diagnoses may start at the same time."""
    if name is None:
        return f"{stem}-{datetime.now().astimezone():%Y%m%d-%H%M%S}-{os.getpid()}"
    if not name or name in {".", ".."} or Path(name).name != name:
        raise TruelineError(f"A run name is a plain file name. Received {name!r}. Give one such as: --name first-try")
    if (runs_folder() / name).exists():
        raise RunExists(
            f"A run named {name!r} exists already in {runs_folder()}. "
            f"Give another --name, or delete it with: trueline runs delete {name}"
        )
    return name


@contextmanager
def _signals_go_to_the_script() -> Iterator[list[subprocess.Popen[bytes]]]:
    """Let Ctrl-C end the script and not this process. A termination of this process ends the script too.

    A handler that does nothing, not SIG_IGN: the child would inherit the latter, and ignore Ctrl-C itself.
    """
    children: list[subprocess.Popen[bytes]] = []

    def pass_on(number: int, _frame: FrameType | None) -> None:
        for child in children:
            child.send_signal(number)

    interrupt = signal.signal(signal.SIGINT, lambda *_: None)
    terminate = signal.signal(signal.SIGTERM, pass_on)
    try:
        yield children
    finally:
        signal.signal(signal.SIGINT, interrupt)
        signal.signal(signal.SIGTERM, terminate)
