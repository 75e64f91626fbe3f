"""The folder of runs: naming, finding, listing and deleting them."""

from __future__ import annotations

import errno
import os
import re
import shlex
import shutil
import stat
from contextlib import suppress
from datetime import datetime
from pathlib import Path

import msgspec

from trueline.errors import CannotRecord, RunAmbiguous, RunExists, RunNotFound, TruelineError
from trueline.model import RunInfo
from trueline.store.format import RUN_FILE, read_info
from trueline.store.state import STATE_FILE, StateFile, is_over, rank_state_file, read_state
from trueline.store.turn import next_number

RUNS_VARIABLE = "TRUELINE_RUNS"
# With the number of the process that makes it: a run that has no name yet.
NEW_PREFIX = ".new-"
_LATEST = re.compile(r"latest(?:~(\d{1,9}))?")
_MOST_SHOWN = 8
# In characters, of at most four bytes each.
_LONGEST_STEM = 50


def runs_folder() -> Path:
    """`.trueline/runs` under the current directory, or what the environment variable TRUELINE_RUNS says."""
    return Path(os.environ.get(RUNS_VARIABLE) or Path(".trueline") / "runs")


class NewRun(msgspec.Struct, frozen=True):
    """Where a run is recorded, which number it has in its folder (see turn.py), and the file that tells how it goes."""

    directory: Path
    number: int | None
    state: StateFile


def begin_run(stem: str, name: str | None = None) -> NewRun:
    """Make the directory of a new run: of the given name, or of a free one made from the script's name and the time.

    It appears under its name with its state in it, so that whoever finds it can tell whether it is still recorded.
    """
    if name is not None:
        check_name(name)
    try:
        folder = runs_folder().absolute()
        folder.mkdir(parents=True, exist_ok=True)
        number = next_number(folder, _largest_number)
        made = folder / f"{NEW_PREFIX}{os.getpid()}-{number}"
        made.mkdir()
        try:
            state = StateFile(made / STATE_FILE)
            directory = _named(made, folder, stem, name)
        except BaseException:
            shutil.rmtree(made, ignore_errors=True)
            raise
    except OSError as problem:
        raise cannot_record(problem) from problem
    state.path = directory / STATE_FILE
    return NewRun(directory, number, state)


def join_run(name: str, rank: int) -> NewRun:
    """Begin to record one rank of a launch, in the directory that its ranks share. The first that comes makes it."""
    check_name(name)
    number = None
    try:
        folder = runs_folder().absolute()
        directory = folder / name
        directory.mkdir(parents=True, exist_ok=True)
        state = state_of_rank(directory, rank)
        if rank == 0:
            known = read_info(directory).number if (directory / RUN_FILE).is_file() else None
            number = known if known is not None else next_number(folder, _largest_number)
    except OSError as problem:
        raise cannot_record(problem) from problem
    return NewRun(directory, number, state)


def state_of_rank(directory: Path, rank: int) -> StateFile:
    """A launch may start a rank again: what the first one told gives way."""
    path = directory / rank_state_file(rank)
    if path.is_file() and is_over(path, read_state(path)):
        path.unlink(missing_ok=True)
    return StateFile(path)


def _named(made: Path, folder: Path, stem: str, name: str | None) -> Path:
    base = name or name_now(stem)
    count = 1
    while True:
        directory = folder / (base if count == 1 else f"{base}-{count}")
        try:
            # Takes the place of an empty folder too, and of nothing else.
            made.rename(directory)
        except OSError as problem:
            if problem.errno not in {errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR}:
                raise
            if name is not None:
                raise already_there(directory) from problem
            count += 1
        else:
            return directory


def name_now(stem: str) -> str:
    """A name of the script's name, unless that is too long for more, and the time."""
    return f"{stem[:_LONGEST_STEM]}-{datetime.now():%Y%m%d-%H%M%S}"


def is_latest(reference: str) -> bool:
    """Whether that is `latest` or `latest~N`."""
    return _LATEST.fullmatch(reference) is not None


def check_name(name: str) -> None:
    """Refuse a name that leads elsewhere, or that stands for something else wherever a run is named."""
    if not name or name in {".", ".."} or Path(name).name != name:
        raise TruelineError(f"A run name is a plain file name. Received {name!r}. Give one such as: --name first-try")
    if _LATEST.fullmatch(name) or name.startswith(NEW_PREFIX):
        raise TruelineError(
            f"{name!r} cannot be the name of a run: it stands for another one. Give one such as: --name first-try"
        )


def is_taken(directory: Path) -> bool:
    """Whether no run can be made there: an empty folder gives way."""
    try:
        with os.scandir(directory) as entries:
            return any(True for _ in entries)
    except NotADirectoryError:
        return True
    except OSError:
        return False


def already_there(directory: Path) -> RunExists:
    """The error of a name that is taken, with what can be done about it."""
    name, folder = directory.name, directory.parent
    if not (directory / RUN_FILE).is_file():
        return RunExists(f"{directory} exists already and is no run of Trueline's. Give another --name, or move it away.")
    with suppress(TruelineError):
        if (info := read_info(directory)).status == "running":
            return RunExists(f"A run named {name!r} is being recorded in {folder} by process {info.pid}. Give another --name.")
    return RunExists(
        f"A run named {name!r} exists already in {folder}. Give another --name, or delete it with: "
        f"trueline runs delete {shlex.quote(name)}"
    )


def cannot_record(problem: OSError) -> CannotRecord:
    return CannotRecord(
        f"{runs_folder()} cannot be written ({problem.strerror or problem}). Runs go there; choose another folder with "
        f"{RUNS_VARIABLE}=FOLDER"
    )


def find_run(reference: str) -> Path:
    """The directory of a run given by its path, its name or how that begins; `latest` is the one started last, `latest~1` the
    one before."""
    if (back := _LATEST.fullmatch(reference)) is not None:
        return _latest(int(back[1] or 0))
    folder = runs_folder()
    try:
        for candidate in (Path(reference), folder / reference):
            if (candidate / RUN_FILE).is_file():
                return candidate
        if Path(reference).is_dir():
            read_info(Path(reference))
    except OSError as problem:
        raise RunNotFound(f"{reference!r} cannot be read ({problem.strerror}). List the runs with: trueline runs") from problem
    begun = [path for path, _ in list_runs() if path.name.startswith(reference)] if reference else []
    if len(begun) > 1:
        shown = ", ".join(path.name for path in begun[-_MOST_SHOWN:])
        more = f" and {len(begun) - _MOST_SHOWN} older ones" if len(begun) > _MOST_SHOWN else ""
        raise RunAmbiguous(f"{len(begun)} runs in {folder} begin with {reference!r}: {shown}{more}. Give more of the name.")
    if begun:
        return begun[0]
    raise RunNotFound(f"No run named {reference!r} in {folder}. List the runs with: trueline runs")


def _latest(back: int) -> Path:
    runs = list_runs()
    if not runs:
        raise RunNotFound(f"There are no runs in {runs_folder()}. Record one with: trueline run SCRIPT")
    if back >= len(runs):
        raise RunNotFound(
            f"There is no run latest~{back} in {runs_folder()}: it holds {len(runs)}. List the runs with: trueline runs"
        )
    return runs[-1 - back][0]


def list_runs() -> list[tuple[Path, RunInfo]]:
    """All readable runs of the folder, in the order in which they were started, whatever the clock said."""
    found = []
    folder = runs_folder()
    try:
        paths = list(folder.glob(f"*/{RUN_FILE}"))
    except OSError as problem:
        raise RunNotFound(
            f"{folder} cannot be read ({problem.strerror}). Runs are there; give another folder with {RUNS_VARIABLE}=FOLDER"
        ) from problem
    for path in paths:
        try:
            found.append((path.parent, read_info(path.parent)))
        except TruelineError:
            continue
    return sorted(found, key=lambda item: (item[1].number or 0, item[1].started, item[1].name))


def _largest_number() -> int:
    with suppress(RunNotFound):
        return max((info.number or 0 for _, info in list_runs()), default=0)
    return 0


def delete_run(directory: Path) -> None:
    """Remove a run directory; refuses to touch a directory that is not one, or whose script still runs."""
    info = read_info(directory)
    if info.status == "running":
        raise TruelineError(f"Run {info.name!r} is still being recorded by process {info.pid}. Stop the script first.")
    try:
        # Of a link only the link goes, here and inside of the run.
        directory.unlink() if directory.is_symlink() else shutil.rmtree(directory)
    except OSError as problem:
        raise TruelineError(
            f"{directory} cannot be deleted as a whole ({problem.filename}: {problem.strerror}). Delete the rest by hand."
        ) from problem


def size_of(directory: Path) -> int:
    """Bytes that the run takes on disk."""
    return sum(map(_file_size, directory.rglob("*")))


def _file_size(path: Path) -> int:
    try:
        status = path.lstat()
    except FileNotFoundError:  # a journal goes when it is folded
        return 0
    return status.st_size if stat.S_ISREG(status.st_mode) else 0
