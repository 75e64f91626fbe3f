"""Putting files back as they were before a run, from what the recording kept of them.

Works on whatever is at the paths that the log names: only ever called inside of a sandbox. Imported
by the process that becomes it: standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import shutil
import stat
from typing import Any, BinaryIO

LOG = "files.jsonl"
_NOT_COVERED = ("/dev/", "/proc/", "/sys/")
_SHARED_MEMORY = "/dev/shm/"


def undo(folder: str) -> None:
    """Take back what the log in `folder` tells of, the last first. What cannot be taken back stays."""
    for entry in reversed(_entries(os.path.join(folder, LOG))):
        with contextlib.suppress(OSError, KeyError, TypeError, ValueError):
            _STEPS[entry["op"]](entry, folder)


def remove(path: str) -> None:
    """Whatever is there, if anything is."""
    with contextlib.suppress(OSError):
        if stat.S_ISDIR(os.lstat(path).st_mode):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)


def _entries(log: str) -> list[dict[str, Any]]:
    found = []
    with contextlib.suppress(OSError), open(log, encoding="utf-8", errors="surrogateescape") as file:
        for line in file:
            # The last line may be cut off.
            with contextlib.suppress(ValueError):
                found.append(json.loads(line))
    return [entry for entry in found if isinstance(entry, dict) and _is_of_files(entry)]


def _is_of_files(entry: dict[str, Any]) -> bool:
    """Devices and processes are no files that a recording keeps, and are not covered by the view."""
    path, copy = entry.get("path"), entry.get("copy")
    if not isinstance(path, str) or os.path.normpath(path) != path:
        return False
    if path.startswith(_NOT_COVERED) and not path.startswith(_SHARED_MEMORY):
        return False
    return path.startswith("/") and (copy is None or (isinstance(copy, str) and os.path.basename(copy) == copy))


def _made(entry: dict[str, Any], _folder: str) -> None:
    remove(entry["path"])


def _file(entry: dict[str, Any], folder: str) -> None:
    path, copy = entry["path"], entry["copy"]
    if copy is not None:
        _make_room(path, is_wanted=stat.S_ISREG)
        with open(os.path.join(folder, copy), "rb") as kept, _emptied(path) as file:
            shutil.copyfileobj(kept, file, 1 << 20)
    _attributes(entry, folder)


def _emptied(path: str) -> BinaryIO:
    try:
        # In place: names that are links to it show the same again.
        return open(path, "wb")
    except OSError as problem:
        if problem.errno != errno.EOVERFLOW:
            raise
        # Of a user that a name space of one user knows nothing of: it is made anew as one of our own.
        os.unlink(path)
        return open(path, "wb")


def _folder(entry: dict[str, Any], folder: str) -> None:
    _make_room(entry["path"], is_wanted=stat.S_ISDIR)
    if not os.path.isdir(entry["path"]):
        os.mkdir(entry["path"])
    _attributes(entry, folder)


def _link(entry: dict[str, Any], _folder: str) -> None:
    remove(entry["path"])
    os.makedirs(os.path.dirname(entry["path"]), exist_ok=True)
    os.symlink(entry["target"], entry["path"])


def _moved(entry: dict[str, Any], _folder: str) -> None:
    # It was about to be moved: where it still is, that has failed.
    if os.path.lexists(entry["path"]) or not os.path.isdir(entry["to"]):
        return
    os.makedirs(os.path.dirname(entry["path"]), exist_ok=True)
    shutil.move(entry["to"], entry["path"])


def _attributes(entry: dict[str, Any], _folder: str) -> None:
    path = entry["path"]
    with contextlib.suppress(OSError):
        os.chown(path, entry["uid"], entry["gid"])
    os.chmod(path, entry["mode"])
    os.utime(path, ns=(entry["atime"], entry["mtime"]))


def _make_room(path: str, *, is_wanted: Any) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    if os.path.lexists(path) and not is_wanted(os.lstat(path).st_mode):
        remove(path)


_STEPS = {
    "made": _made,
    "file": _file,
    "folder": _folder,
    "link": _link,
    "moved": _moved,
    "attributes": _attributes,
}
