"""What processes of ours that were killed left half made: removed by the next command.

Only in the folder of runs and in the folder of the key, only what has a name of ours, and only where its
maker is certainly gone: it held a lock, or it was a process of this machine. Links are not followed.
"""

from __future__ import annotations

import os
import re
import shutil
from contextlib import suppress
from pathlib import Path

from trueline.store.feed import FEED_FOLDER
from trueline.store.format import (
    ALIGNED_FOLDER,
    CLOSER_FOLDER,
    PERTURBED_FOLDER,
    RERUN_FOLDER,
    RUN_FILE,
    SCRATCH_FOLDER,
    TENSOR_FOLDER,
)
from trueline.store.journal import held
from trueline.store.origin import key_folder
from trueline.store.runs import NEW_PREFIX, runs_folder
from trueline.store.staging import STAGING, remove_staging
from trueline.store.state import is_alive, is_free, is_state_file, nobody_records

_DATABASE = re.compile(r"(rank\d+)\.sqlite\.\d+")
_DESCRIPTION = re.compile(re.escape(RUN_FILE) + r"\.(\d+)")
_SCRATCH = re.compile(re.escape(SCRATCH_FOLDER) + r"\d+")
_STAGING = re.compile(re.escape(STAGING) + r"(\d+)")
_NEW = re.compile(re.escape(NEW_PREFIX) + r"(\d+)-\d+")
_KEY = re.compile(r"key\.(\d+)")
_WITH_RUNS_INSIDE = (RERUN_FOLDER, CLOSER_FOLDER, ALIGNED_FOLDER, PERTURBED_FOLDER)
_WITH_PARTS = (TENSOR_FOLDER, FEED_FOLDER)


def clear_leftovers() -> None:
    """Never fails: what cannot be removed stays for the command after this one."""
    with suppress(OSError, RuntimeError):
        folder = runs_folder()
        for entry in _entries(folder):
            if entry.is_dir(follow_symlinks=False):
                _clear_in_folder_of_runs(entry)
    with suppress(OSError, RuntimeError):
        for entry in _entries(key_folder()):
            if (made := _KEY.fullmatch(entry.name)) is not None and _is_of_the_dead(entry, int(made[1])):
                _remove_file(entry)


def _clear_in_folder_of_runs(entry: os.DirEntry[str]) -> None:
    if (made := _STAGING.fullmatch(entry.name)) is not None:
        if _is_of_the_dead(entry, int(made[1])):
            remove_staging(Path(entry.path))
    elif (made := _NEW.fullmatch(entry.name)) is not None:
        # Between the making of the folder and that of the state in it only the number tells whose it is.
        if not is_alive(int(made[1])) and (nobody_records(Path(entry.path)) or not _entries(entry.path)):
            _remove_unless_used(entry.path)
    else:
        _clear_run(entry.path)


def _clear_run(directory: str) -> None:
    entries = _entries(directory)
    names = {entry.name for entry in entries}
    if RUN_FILE not in names:
        # Killed before it was described: nothing can be made of it, and its name is wanted.
        if any(map(is_state_file, names)) and nobody_records(Path(directory)):
            _remove_unless_used(directory)
        return
    for entry in entries:
        with suppress(OSError):
            _clear_in_run(entry, Path(directory))


def _clear_in_run(entry: os.DirEntry[str], directory: Path) -> None:
    name = entry.name
    if entry.is_symlink():
        return
    if entry.is_dir():
        if name in _WITH_RUNS_INSIDE:
            _clear_run(entry.path)
        elif name in _WITH_PARTS:
            parts = [part for part in _entries(entry.path) if part.name.endswith(".partial")]
            if parts and nobody_records(directory):
                for part in parts:
                    _remove_file(part)
        elif (made := _STAGING.fullmatch(name)) is not None:
            if _is_of_the_dead(entry, int(made[1])):
                remove_staging(Path(entry.path))
        elif _SCRATCH.fullmatch(name) and nobody_records(directory):
            shutil.rmtree(entry.path, ignore_errors=True)
    elif (made := _DATABASE.fullmatch(name)) is not None:
        _remove_unless_folded(entry, directory / f"{made[1]}.journal")
    elif (made := _DESCRIPTION.fullmatch(name)) is not None and not is_alive(int(made[1])) and nobody_records(directory):
        _remove_file(entry)


def _remove_unless_folded(entry: os.DirEntry[str], journal: Path) -> None:
    """Whoever folds a journal holds it meanwhile; without a journal nobody does."""
    if not os.path.lexists(journal):
        _remove_file(entry)
        return
    with held(journal) as free:
        if free:
            _remove_file(entry)


def _remove_unless_used(directory: str) -> None:
    """Remove a folder in which there is nothing but what describes a run."""
    entries = _entries(directory)
    if all(is_state_file(entry.name) or _DESCRIPTION.fullmatch(entry.name) for entry in entries):
        for entry in entries:
            _remove_file(entry)
        Path(directory).rmdir()


def _is_of_the_dead(entry: os.DirEntry[str], pid: int) -> bool:
    return not is_alive(pid) and is_free(Path(entry.path))


def _remove_file(entry: os.DirEntry[str]) -> None:
    if entry.is_file(follow_symlinks=False):
        Path(entry.path).unlink()


def _entries(folder: str | Path) -> list[os.DirEntry[str]]:
    with suppress(FileNotFoundError, NotADirectoryError), os.scandir(folder) as found:
        return list(found)
    return []
