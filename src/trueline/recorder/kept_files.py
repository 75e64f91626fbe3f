"""What files were before the script changed them, kept so that a second run can start from the same.

The folder `before` of a run holds a log (one JSON object a line) and copies. An entry tells what was at a
path just before the script touched it, so the log taken back from its end gives the state at the start:

    {"op": "made", "path": …}                       nothing was there
    {"op": "file", "path": …, "copy": name, …}      a file; `copy` null with `why` where it is not kept
    {"op": "attributes", "path": …, "mode": …, …}   mode, owner or times were about to change
    {"op": "folder", "path": …, "mode": …, …}       a folder that was about to be removed
    {"op": "link", "path": …, "target": …}          a symbolic link
    {"op": "moved", "path": …, "to": …}             a folder that was about to get another name
    {"op": "suspect", "path": …, "size": …, …}      a large file that something may write to

Forked processes of the script write into the same log: every line is one append.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import stat
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

from trueline.store.journal import beyond_standard_streams

LOG = "files.jsonl"
# All copies of a run together, and what each may take of the room that is left.
MOST_BYTES = 2 << 30
_SHARE_OF_FREE = 0.25
_MOST_ENTRIES = 20_000
# Files of which it is not known whether they will be written are copied up to this size.
_MOST_SUSPECT = 64 << 20
_BLOCK = 8 << 20
_SYSTEM = ("/proc/", "/sys/", "/dev/")
_SHARED_MEMORY = "/dev/shm/"

# Held before anything is replaced: what is done here is not the script's doing.
_open, _write, _read, _close = os.open, os.write, os.read, os.close


class KeptFiles:
    """Told of every change before it is made. Never raises: what cannot be kept is noted as such."""

    def __init__(self, folder: Path, own_folder: str) -> None:
        self._folder = os.path.abspath(folder)
        self._system = (*_SYSTEM, own_folder)
        self._log = -1
        self._log_file: os.stat_result
        self._content: set[str] = set()
        self._attributes: set[str] = set()
        self._renamed: set[str] = set()
        # Folders that the script made: what is in them goes with them.
        self._made: set[str] = set()
        self._bytes = 0
        self._entries = 0
        self._numbers = itertools.count()
        self._busy = threading.local()
        self._lock = threading.RLock()
        os.register_at_fork(after_in_child=self._after_fork)

    def _after_fork(self) -> None:
        self._lock = threading.RLock()

    def writing(self, path: str) -> None:
        """The content of the file that this path leads to may change, or the file is made."""
        path = os.path.realpath(path)
        self._told(self._keep if os.path.lexists(path) else self._keep_name, path)

    def suspecting(self, path: str) -> None:
        """Something that may write has opened this file: a database."""
        self._told(self._suspect, os.path.realpath(path))

    def making(self, path: str) -> None:
        """A name is about to appear: a folder, a link, a pipe. Where it is there already, none of these succeeds."""
        if not os.path.lexists(path):
            self._told(self._keep_name, _of_name(path))

    def linking(self, path: str, to: str) -> None:
        """`to` is about to become another name of the file: what is written there is written to both."""
        self._told(self._keep, _of_name(path))
        self.making(to)

    def removing(self, path: str) -> None:
        self._told(self._keep, _of_name(path))

    def moving(self, path: str, to: str) -> None:
        """A name is about to go, and another to appear or to be replaced."""
        self._told(self._move, _of_name(path), _of_name(to))

    def changing(self, path: str) -> None:
        """Mode, owner or times are about to change."""
        self._told(self._keep_attributes, os.path.realpath(path))

    def _told(self, keep: Any, *paths: str) -> None:
        path = paths[-1]
        if getattr(self._busy, "now", False) or (path.startswith(self._system) and not path.startswith(_SHARED_MEMORY)):
            return
        self._busy.now = True
        try:
            with self._lock:
                keep(*paths)
        except Exception as problem:  # noqa: BLE001 - a script is not stopped because its files cannot be kept
            with suppress(OSError):
                self._add("file", paths[-1], copy=None, why=f"{type(problem).__name__}: {problem}")
        finally:
            self._busy.now = False

    def _keep(self, path: str) -> None:
        if path in self._content or self._is_in_made(path):
            return
        self._content.add(path)
        try:
            status = os.lstat(path)
        except (FileNotFoundError, NotADirectoryError):
            self._made.add(path)
            self._add("made", path)
            return
        if stat.S_ISLNK(status.st_mode):
            self._add("link", path, target=os.readlink(path))
        elif stat.S_ISDIR(status.st_mode):
            self._add("folder", path, **_attributes(status))
        elif stat.S_ISREG(status.st_mode):
            self._keep_content(path, status)

    def _keep_name(self, path: str) -> None:
        """From now on the name may stand for another file: that one must go before the first comes
        back, else all other names of it would show what comes back too."""
        self._keep(path)
        if path not in self._renamed and not self._is_in_made(path):
            self._renamed.add(path)
            self._add("made", path)

    def _keep_content(self, path: str, status: os.stat_result) -> None:
        why = self._why_not(status.st_size)
        name = None
        if why is None:
            name = f"{os.getpid()}-{next(self._numbers)}"
            self._prepare()
            self._bytes += status.st_size
            try:
                _copy(path, f"{self._folder}/{name}")
            except OSError as problem:
                name, why = None, f"it could not be copied ({problem.strerror})"
        self._add("file", path, copy=name, why=why, size=status.st_size, **_attributes(status))

    def _why_not(self, size: int) -> str | None:
        if self._bytes + size > MOST_BYTES:
            return f"files of more than {MOST_BYTES >> 30} GB would have had to be kept"
        parent = self._folder if self._log >= 0 else os.path.dirname(self._folder)
        if size > _SHARE_OF_FREE * shutil.disk_usage(parent).free:
            return "the disk has too little room to keep a copy of it"
        return None

    def _suspect(self, path: str) -> None:
        if path in self._content or self._is_in_made(path):
            return
        try:
            status = os.stat(path)
        except OSError:
            self._keep(path)
            return
        if status.st_size <= _MOST_SUSPECT:
            self._keep(path)
        else:
            self._content.add(path)
            self._add("suspect", path, size=status.st_size, mtime=status.st_mtime_ns)

    def _move(self, path: str, to: str) -> None:
        if not stat.S_ISDIR(os.lstat(path).st_mode):
            self._keep(path)
            if not os.path.isdir(to) or os.path.islink(to):
                self._keep_name(to)
            return
        if os.path.lexists(to) and (not os.path.isdir(to) or os.listdir(to)):
            return
        self._keep(to)
        is_own = self._is_in_made(path)
        if not is_own:
            self._add("moved", path, to=to)
        # Both names now stand for something else than before.
        for known in (self._content, self._attributes, self._made, self._renamed):
            known.difference_update([each for each in known if _is_in(each, path) or _is_in(each, to)])
        if is_own:
            self._made.add(to)

    def _keep_attributes(self, path: str) -> None:
        if path in self._attributes or path in self._content or self._is_in_made(path):
            return
        self._attributes.add(path)
        with suppress(FileNotFoundError):
            self._add("attributes", path, **_attributes(os.stat(path)))

    def _is_in_made(self, path: str) -> bool:
        if not self._made:
            return False
        while len(path) > 1:
            if path in self._made:
                return True
            path = path.rpartition("/")[0]
        return False

    def _add(self, op: str, path: str, **what: Any) -> None:
        self._entries += 1
        if self._entries > _MOST_ENTRIES:
            if self._entries > _MOST_ENTRIES + 1:
                return
            op, what = "file", {"copy": None, "why": f"the script changes more than {_MOST_ENTRIES:,} files"}
        self._prepare()
        line = json.dumps({"op": op, "path": path, **what}) + "\n"
        _write(self._log, line.encode("utf-8", "surrogateescape"))

    def _prepare(self) -> None:
        if self._log < 0 or not self._is_ours():
            with suppress(FileExistsError):
                os.mkdir(self._folder)
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._log = beyond_standard_streams(_open(f"{self._folder}/{LOG}", flags, 0o600))
            self._log_file = os.fstat(self._log)

    def _is_ours(self) -> bool:
        """A script that closes all descriptors is given the number of the log again for a file of its own."""
        try:
            return os.path.samestat(os.fstat(self._log), self._log_file)
        except OSError:
            return False


def _of_name(path: str) -> str:
    """The whole path of a name; a link in its last part stays what it is."""
    folder, name = os.path.split(os.path.abspath(path))
    return os.path.join(os.path.realpath(folder), name)


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")


def _attributes(status: os.stat_result) -> dict[str, int]:
    return {
        "mode": stat.S_IMODE(status.st_mode),
        "uid": status.st_uid,
        "gid": status.st_gid,
        "atime": status.st_atime_ns,
        "mtime": status.st_mtime_ns,
    }


def _copy(path: str, copy: str) -> None:
    source = _opened_quietly(path)
    try:
        target = _open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            while block := _read(source, _BLOCK):
                while block:
                    block = block[_write(target, block) :]
        finally:
            _close(target)
    except OSError:
        with suppress(OSError):
            os.unlink(copy)
        raise
    finally:
        _close(source)


def _opened_quietly(path: str) -> int:
    """Opened so that not even the time of its last reading changes, where that is allowed."""
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK
    try:
        return _open(path, flags | os.O_NOATIME)
    except PermissionError:
        return _open(path, flags)
