"""Which files are where a script may write, before and after it: what the recording of a run cannot see itself.

Subprocesses and libraries of native code write out of Python's sight. What they made is found here, so
that a second run does not find it; what they changed is found here too, and said.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path
from time import monotonic
from typing import NamedTuple

from trueline.rerun.before import Changes

# Larger places are looked through up to here.
_MOST_ENTRIES = 300_000
_LONGEST_SECONDS = 5.0
# What tools write for themselves says nothing of a training.
_LEFT_OUT = {"__pycache__", ".git", ".hg", ".svn", "node_modules", ".trueline"}


class _State(NamedTuple):
    number: int
    size: int
    mtime: int
    is_folder: bool
    # Of mode, owner, names and extended attributes: of folders it changes with what is in them.
    touched: int


class Inventory:
    """All entries below some folders, as they are now."""

    def __init__(self, folders: Iterable[Path], own: Path) -> None:
        self._own = os.path.realpath(own)
        self._folders = _outermost({os.path.realpath(folder) for folder in folders} - {"/"})
        self._found, self._complete = self._walk()

    def changes(self) -> Changes:
        """How it is now against how it was."""
        if not self._complete:
            return Changes(complete=False)
        now, complete = self._walk()
        old = self._found
        made = [path for path in now if path not in old]
        changed = [path for path, state in now.items() if path in old and not state.is_folder and state != old[path]]
        removed = [path for path in old if path not in now]
        if not complete:
            # What it did not come to is not gone.
            removed = []
        # The folder of the runs may have come with this one.
        made = [path for path in made if not _is_below(self._own, path)]
        return Changes(_roots(made), changed, _roots(removed), complete)

    def _walk(self) -> tuple[dict[str, _State], bool]:
        found: dict[str, _State] = {}
        until = monotonic() + _LONGEST_SECONDS
        waiting = list(self._folders)
        while waiting:
            folder = waiting.pop()
            try:
                entries = list(os.scandir(folder))
            except OSError:
                continue
            for entry in entries:
                if entry.name in _LEFT_OUT or entry.path == self._own:
                    continue
                try:
                    status = entry.stat(follow_symlinks=False)
                except OSError:
                    continue
                is_folder = stat.S_ISDIR(status.st_mode)
                found[entry.path] = _State(status.st_ino, status.st_size, status.st_mtime_ns, is_folder, status.st_ctime_ns)
                if is_folder:
                    waiting.append(entry.path)
            if len(found) > _MOST_ENTRIES or monotonic() > until:
                return found, False
        return found, True


def _outermost(folders: set[str]) -> list[str]:
    return [folder for folder in sorted(folders) if not any(_is_below(folder, other) for other in folders)]


def _roots(paths: list[str]) -> list[str]:
    """Without what lies in another one of them."""
    found: list[str] = []
    for path in sorted(paths, key=lambda path: path.split("/")):
        if not found or not _is_below(path, found[-1]):
            found.append(path)
    return found


def _is_below(path: str, folder: str) -> bool:
    return path != folder and path.startswith(folder.rstrip("/") + "/")
