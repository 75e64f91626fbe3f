"""What the recording of a run kept of the files that the script changed, and what it could not keep."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from trueline import limits
from trueline.errors import TruelineError
from trueline.reading import open_regular, read_whole, reading
from trueline.recorder.kept_files import LOG
from trueline.store import BEFORE_FOLDER, Run
from trueline.store.format import replace_file

_CHANGES_FILE = "changes.json"


class Changes(msgspec.Struct):
    """What is seen of the script's files from outside, beside what the recording saw of them: `made` ones are hidden from a
    second run, `changed` and `removed` ones cannot be put back for it. `complete`: all places were looked through."""

    made: list[str] = []
    changed: list[str] = []
    removed: list[str] = []
    complete: bool = True


class Before(msgspec.Struct, frozen=True):
    """`folder`: where the log and the copies are; None where nothing was changed. `written`: all paths that were.
    `hidden`: what the script made out of the recording's sight. `lost`: what is not as it was before and cannot be put
    back, each with the reason. `size`: bytes of the files that the script left."""

    folder: Path | None
    written: tuple[str, ...]
    hidden: tuple[str, ...]
    lost: dict[str, str]
    size: int

    @property
    def doubt(self) -> str | None:
        """What a second run does not find as the first one did, in words."""
        if not self.lost:
            return None
        path, why = next(iter(self.lost.items()))
        others = f" (and {len(self.lost) - 1} other files)" if len(self.lost) > 1 else ""
        return f"{path} is not as it was before the first run{others}: {why}"


# What there is to know of the files of a script that has not run yet.
UNCHANGED = Before(None, (), (), {}, 0)


def before(run: Run) -> Before:
    folder = run.directory.absolute() / BEFORE_FOLDER
    entries = _entries(folder / LOG)
    written = {str(entry["path"]) for entry in entries}
    lost = {str(entry["path"]): str(entry.get("why")) for entry in entries if _is_lost(entry)}
    changes = changes_of(run.directory)
    for path in (*changes.changed, *changes.removed):
        if path not in written:
            lost[path] = "it was changed by something that the recording does not see"
    written.update(changes.made, changes.changed)
    size = sum(_size(path) for path in written) + sum(int(entry.get("size") or 0) for entry in entries)
    return Before(folder if entries else None, tuple(sorted(written)), tuple(changes.made), lost, size)


def write_changes(directory: Path, changes: Changes) -> None:
    """A run on a full disk goes without."""
    with suppress(OSError):
        replace_file(directory / _CHANGES_FILE, msgspec.json.encode(changes))


def changes_of(directory: Path) -> Changes:
    path = directory / _CHANGES_FILE
    try:
        with reading(path):
            return msgspec.json.decode(read_whole(path, limits.NOTES_BYTES), type=Changes)
    except TruelineError:
        return Changes()


def _entries(log: Path) -> list[dict[str, Any]]:
    found = []
    with suppress(TruelineError), reading(log), open_regular(log) as file:
        for line in file.read(limits.NOTES_BYTES).splitlines():
            with suppress(ValueError, RecursionError):
                entry = json.loads(line)
                if isinstance(entry, dict) and isinstance(entry.get("path"), str):
                    found.append(entry)
    return found


def _is_lost(entry: dict[str, Any]) -> bool:
    if entry.get("op") == "suspect":
        try:
            status = Path(entry["path"]).stat()
        except (OSError, ValueError):
            return True
        entry["why"] = "it was too large to be kept for the case that it is written"
        return (status.st_size, status.st_mtime_ns) != (entry.get("size"), entry.get("mtime"))
    return entry.get("op") == "file" and entry.get("copy") is None


def _size(path: str) -> int:
    with suppress(OSError, ValueError):
        return Path(path).lstat().st_size
    return 0
