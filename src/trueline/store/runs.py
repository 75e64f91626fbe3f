"""The folder of runs: naming, finding, listing and deleting them."""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from datetime import datetime
from pathlib import Path

from trueline.errors import RunExists, RunNotFound, TruelineError
from trueline.model import RunInfo
from trueline.store.format import RUN_FILE, read_info

RUNS_VARIABLE = "TRUELINE_RUNS"


def runs_folder() -> Path:
    """`.trueline/runs` under the current directory, or what the environment variable TRUELINE_RUNS says."""
    return Path(os.environ.get(RUNS_VARIABLE) or Path(".trueline") / "runs")


def create_run_directory(stem: str, name: str | None = None, *, shared: bool = False) -> Path:
    """Make the directory of a new run: of the given name, or of a free one made from the script's name and the time.

    A shared one may be there already: the ranks of one launch all come here.
    """
    folder = runs_folder()
    if name is not None and (not name or name in {".", ".."} or Path(name).name != name):
        raise TruelineError(f"A run name is a plain file name. Received {name!r}. Give one such as: --name first-try")
    # On its own: a broken link in its place "exists already", which below would be taken for a run of that name.
    folder.mkdir(parents=True, exist_ok=True)
    if name is not None:
        directory = folder / name
        try:
            directory.mkdir(exist_ok=shared)
        except FileExistsError as problem:
            raise RunExists(
                f"A run named {name!r} exists already in {folder}. Give another --name, or delete it with: "
                f"trueline runs delete {shlex.quote(name)}"
            ) from problem
        except OSError as problem:
            raise _unwritable(folder, problem) from problem
        return directory
    base = f"{stem}-{datetime.now():%Y%m%d-%H%M%S}"
    count = 1
    while True:
        directory = folder / (base if count == 1 else f"{base}-{count}")
        try:
            directory.mkdir()
        except FileExistsError:
            count += 1
        except OSError as problem:
            raise _unwritable(folder, problem) from problem
        else:
            return directory


def _unwritable(folder: Path, problem: OSError) -> TruelineError:
    return TruelineError(
        f"{folder} cannot be written ({problem.strerror}). Runs go there; choose another folder with {RUNS_VARIABLE}=FOLDER"
    )


def find_run(reference: str) -> Path:
    """The directory of a run given by its path or its name; `latest` is the one started last."""
    if reference == "latest":
        runs = list_runs()
        if not runs:
            raise RunNotFound(f"There are no runs in {runs_folder()}. Record one with: trueline run SCRIPT")
        return runs[-1][0]
    for candidate in (Path(reference), runs_folder() / reference):
        if (candidate / RUN_FILE).is_file():
            return candidate
    if Path(reference).is_dir():
        read_info(Path(reference))
    raise RunNotFound(f"No run named {reference!r} in {runs_folder()}. List the runs with: trueline runs")


def list_runs() -> list[tuple[Path, RunInfo]]:
    """All readable runs of the folder, oldest first."""
    found = []
    for path in runs_folder().glob(f"*/{RUN_FILE}"):
        try:
            found.append((path.parent, read_info(path.parent)))
        except TruelineError:
            continue
    return sorted(found, key=lambda item: (item[1].started, item[1].name))


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
