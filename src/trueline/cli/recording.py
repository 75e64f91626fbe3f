"""Record a script in a process of its own, as `trueline run` does, and wait for it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import gettempdir
from types import FrameType

from trueline.cli.progress import Progress
from trueline.cli.script import Script
from trueline.errors import TruelineError
from trueline.report.console import flush_output
from trueline.report.words import many
from trueline.rerun import STEPS, Rerun, Terms, look_closer, rerun_first_steps, why_no_closer_look, why_no_rerun
from trueline.rerun.before import write_changes
from trueline.rerun.inventory import Inventory
from trueline.rerun.sandbox.kernel import die_with_parent
from trueline.rerun.sandbox.process import refusal
from trueline.rerun.sandbox.start import started_aside, why_impossible
from trueline.store import (
    CLOSER_FOLDER,
    RERUN_FOLDER,
    Run,
    already_there,
    cannot_record,
    check_name,
    is_taken,
    name_now,
    runs_folder,
)
from trueline.store.reruns import RerunNote, note_rerun

_STDIN, _STDOUT, _STDERR = 0, 1, 2
_POLL_SECONDS = 1.0


def record_script(script: Script, name: str | None, *, output_to_stderr: bool = False, again: bool = False) -> Path:
    """Run and record the script to its end, whatever that is; gives the run directory.

    `again`: it may be run a second time, for which it is seen what files it makes and changes.

    The script has this process's terminal, standard streams and directory. Ctrl-C is the script's: what it recorded
    until then is still there to be checked. `output_to_stderr` keeps this process's standard output for the report.
    """
    directory, command = _new_run(script, name)
    files = Inventory(_folders_of(script), runs_folder()) if again else None
    shared = Inventory(_shared_folders(), runs_folder()) if again else None
    output = None if not output_to_stderr else subprocess.DEVNULL if sys.__stderr__ is None else _STDERR
    # Descriptors that this process was given are the script's too.
    child = subprocess.Popen(command, stdout=output, close_fds=False, preexec_fn=_end_with_this_process())  # noqa: PLW1509, S603 - running the user's script is the job
    _wait_for(child, script, directory)
    _see_that_it_started(child, directory)
    if files is not None and shared is not None:
        found = files.changes()
        # What others change there meanwhile is not the script's doing; what they make is not missed.
        found.made = sorted({*found.made, *shared.changes().made})
        write_changes(directory, found)
    return directory


def record_aside(script: Script, beside: Run | None, *, output_to_stderr: bool = False) -> Path | None:
    """Run and record the script in a sandbox, where it finds the files as the run `beside` found them and writes over nothing;
    None where there is no sandbox."""
    if why_impossible() is not None:
        return None
    directory, command = _new_run(script, None)
    output = _STDERR if output_to_stderr else _STDOUT
    with started_aside(command, runs_folder(), (_STDIN, output, _STDERR), beside) as child:
        _wait_for(child, script, directory)
    if refusal(child) is not None:
        return None
    _see_that_it_started(child, directory)
    return directory


def _new_run(script: Script, name: str | None) -> tuple[Path, list[str]]:
    """Where the run will be, and the command that makes it."""
    script.check()
    name = _free_name(script.stem, name)
    _see_that_there_is_a_place()
    flush_output()
    return runs_folder() / name, [sys.executable, "-m", "trueline", "run", "--name", name, *script.command]


def _see_that_there_is_a_place() -> None:
    """A script that cannot be recorded runs all the same: hours that would end without a diagnosis."""
    try:
        runs_folder().mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=runs_folder()):
            pass
    except OSError as problem:
        raise cannot_record(problem) from problem


def _see_that_it_started(child: subprocess.Popen[bytes], directory: Path) -> None:
    if not directory.is_dir():
        raise TruelineError(
            f"Recording did not start: trueline run ended with exit code {child.returncode} before it made {directory}. "
            "See its message above; trueline doctor examines the environment."
        )


def _wait_for(child: subprocess.Popen[bytes], script: Script, directory: Path) -> None:
    with Progress(script.command, directory) as progress, _signals_go_to_the_script() as children:
        children.append(child)
        while True:
            try:
                child.wait(_POLL_SECONDS)
            except subprocess.TimeoutExpired:
                progress.update()
            else:
                return


def _end_with_this_process() -> Callable[[], None] | None:
    """A diagnosis that is killed does not leave the training behind."""
    if sys.platform != "linux":
        return None
    parent = os.getpid()

    def bind() -> None:
        die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)

    return bind


def _folders_of(script: Script) -> list[Path]:
    """Where a script is likely to write: where it is started, where it lies, and what its arguments name."""
    named = [Path(word) for word in script.command if word and not word.startswith("-")]
    folders = [path if path.is_dir() else path.parent for path in named if _exists(path)]
    return [Path.cwd(), *folders]


def _shared_folders() -> list[Path]:
    """Where programs of all kinds put files for a while."""
    return [Path(folder) for folder in (gettempdir(), "/tmp", "/var/tmp", "/dev/shm")]  # noqa: S108 - looked at, not written


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def record_again(script: Script, terms: Terms, run: Run) -> None:
    """Record the script's first steps a second time, into the run's own folder, when that can show something."""
    reason = why_no_rerun(run, terms)
    made = Rerun(reason)
    if reason is None:
        words = f"Running the first {many(min(len(run.steps), STEPS), 'step')} again (Ctrl-C leaves it out)"
        with Progress([], run.directory, words) as progress:
            made = rerun_first_steps(run, script.command, terms, progress.follow)
    _note(run, RERUN_FOLDER, made)


def record_closer(script: Script, terms: Terms, run: Run) -> None:
    """Record the script in a mode that shows more, into the run's own folder, when there is more to see."""
    reason = why_no_closer_look(run, terms)
    made = Rerun(reason)
    if reason is None:
        words = "Looking closer: running it in PyNative mode, to see inside of compiled graphs (Ctrl-C leaves it out)"
        with Progress([], run.directory, words) as progress:
            made = look_closer(run, script.command, terms, progress.follow)
    _note(run, CLOSER_FOLDER, made)


def _note(run: Run, folder: str, made: Rerun) -> None:
    """The items that wanted it tell why there is none. A disk that is full keeps no notes."""
    with suppress(OSError):
        note_rerun(run.directory, folder, RerunNote(made.refused, made.doubt))


def _free_name(stem: str, name: str | None) -> str:
    """The name that the run will have. One that is made up holds the process id: diagnoses may start at the same time."""
    if name is None:
        return f"{name_now(stem)}-{os.getpid()}"
    check_name(name)
    if is_taken(runs_folder() / name):
        raise already_there(runs_folder() / name)
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
    others = {number: signal.signal(number, pass_on) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield children
    finally:
        signal.signal(signal.SIGINT, interrupt)
        for number, handler in others.items():
            signal.signal(number, handler)
