"""Files that the script reads and writes, whatever it calls for it; what it changes is kept as it was before."""

from __future__ import annotations

import builtins
import io
import os
import sqlite3
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from trueline.recorder.callsite import library_folders
from trueline.recorder.kept_files import KeptFiles
from trueline.recorder.patches import Patches
from trueline.recorder.recorder import Recorder
from trueline.recorder.replacement import Replacement
from trueline.recorder.watches import noting

_MOST_FILES = 10_000
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_SIDE_FILES = ("", "-journal", "-wal", "-shm")
# Packages that write out of Python's sight: module, function or class, position and name of the path, and of the mode where
# only some modes write.
NATIVE_WRITERS: dict[str, tuple[tuple[str, str, int, str, int | None], ...]] = {
    "h5py": (("h5py", "File.__init__", 1, "name", 2),),
    "safetensors": (
        ("safetensors", "serialize_file", 1, "filename", None),
        ("safetensors.numpy", "serialize_file", 1, "filename", None),
        ("safetensors.torch", "serialize_file", 1, "filename", None),
    ),
    "pyarrow.parquet": (("pyarrow.parquet.core", "ParquetWriter.__init__", 1, "where", None),),
    "cv2": (("cv2", "imwrite", 0, "filename", None),),
}


class FileWatch:
    """Records `file_opened` and `file_written` events, and tells `KeptFiles` (where there is one) of every change beforehand."""

    def __init__(self, recorder: Recorder, own_folder: str = "/proc/", kept: KeptFiles | None = None) -> None:
        self.recorder = recorder
        self._own_folder = own_folder
        self._kept = kept
        self._files: set[str] = set()
        self._written: set[str] = set()
        self._libraries = library_folders()

    def install(self, patches: Patches) -> None:
        opened = self._watched_open()
        patches.replace(builtins, "open", opened)
        patches.replace(io, "open", opened)
        patches.replace(os, "open", self._watched_low_open())
        for name in ("rename", "replace"):
            patches.replace(os, name, self._watched_pair(getattr(os, name), self._about_to_move))
        for name in ("remove", "unlink", "rmdir"):
            patches.replace(os, name, self._watched_name(getattr(os, name), "removing", 0))
        for name in ("mkdir", "mkfifo", "mknod"):
            patches.replace(os, name, self._watched_name(getattr(os, name), "making", 0))
        patches.replace(os, "link", self._watched_pair(os.link, self._about_to_link))
        patches.replace(os, "symlink", self._watched_name(os.symlink, "making", 1))
        for name in ("chmod", "chown", "lchown", "utime", "fchmod", "fchown"):
            patches.replace(os, name, self._watched_name(getattr(os, name), "changing", 0))
        patches.replace(os, "truncate", self._watched_name(os.truncate, "writing", 0))
        patches.replace(sqlite3, "connect", self._watched_connect())

    def package_imported(self, package: str, patches: Patches) -> None:
        """A package of `NATIVE_WRITERS` is there to be watched."""
        for module_name, name, position, keyword, mode in NATIVE_WRITERS[package]:
            owner: Any = sys.modules.get(module_name)
            holder, _, attribute = name.rpartition(".")
            owner = getattr(owner, holder, None) if holder else owner
            original = getattr(owner, attribute, None)
            if original is not None:
                patches.replace(owner, attribute, self._watched_writer(original, position, keyword, mode))

    def writing(self, path: str | os.PathLike[str]) -> None:
        """Called before a file is written by something else than what is watched here."""
        self._about_to_write(path)

    def _watched_open(self) -> Any:
        original = io.open

        def watched(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            writes = isinstance(mode, str) and bool({"w", "a", "x", "+"} & set(mode))
            if writes:
                self._about_to_write(file)
            handle = original(file, mode, *args, **kwargs)
            if self.recorder.active and not writes:
                self._opened(file)
            return handle

        return Replacement(watched)

    def _watched_low_open(self) -> Any:
        original = os.open

        def watched(path: Any, flags: int, *args: Any, **kwargs: Any) -> int:
            if isinstance(flags, int) and flags & _WRITES and not flags & os.O_DIRECTORY:
                self._about_to_write(path, kwargs.get("dir_fd"))
            return original(path, flags, *args, **kwargs)

        return Replacement(watched)

    def _watched_pair(self, original: Any, note: Callable[[Any, Any], None]) -> Any:
        def watched(*args: Any, **kwargs: Any) -> None:
            note(args, kwargs)
            original(*args, **kwargs)

        return Replacement(watched)

    @noting
    def _about_to_move(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        both = _both(args, kwargs)
        if both is not None:
            self._tell_written(both[1])
            if self._kept is not None:
                self._kept.moving(*both)

    @noting
    def _about_to_link(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        both = _both(args, kwargs)
        if both is not None and self._kept is not None:
            self._kept.linking(*both)

    def _watched_name(self, original: Any, what: str, position: int) -> Any:
        keyword = "dst" if position else "path"

        def watched(*args: Any, **kwargs: Any) -> Any:
            if self._kept is not None:
                given = args[position] if len(args) > position else kwargs.get(keyword)
                self._tell_kept(what, given, kwargs.get("dir_fd"))
            return original(*args, **kwargs)

        return Replacement(watched)

    @noting
    def _tell_kept(self, what: str, given: Any, folder: int | None) -> None:
        path = _whole(f"/proc/self/fd/{given}" if what == "changing" and isinstance(given, int) else given, folder)
        if path is not None and self._kept is not None:
            getattr(self._kept, what)(path)

    def _watched_connect(self) -> Any:
        original = sqlite3.connect

        def watched(*args: Any, **kwargs: Any) -> Any:
            given = args[0] if args else kwargs.get("database")
            self._about_to_connect(given, kwargs.get("uri", False))
            return original(*args, **kwargs)

        return Replacement(watched)

    @noting
    def _about_to_connect(self, database: Any, is_address: bool) -> None:  # noqa: FBT001 - as sqlite3 calls it
        path = _whole(database, None)
        if self._kept is None or path is None or path.endswith(":memory:"):
            return
        if is_address and str(database).startswith("file:"):
            address = urlsplit(str(database))
            if "mode=ro" in address.query or "mode=memory" in address.query or "immutable=1" in address.query:
                return
            path = os.path.abspath(unquote(address.path))
        for ending in _SIDE_FILES:
            self._kept.suspecting(path + ending)

    def _watched_writer(self, original: Any, position: int, keyword: str, mode: int | None) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            given = args[position] if len(args) > position else kwargs.get(keyword)
            way = "w" if mode is None else args[mode] if len(args) > mode else kwargs.get("mode", "r")
            if way != "r":
                self._about_to_write(given)
            return original(*args, **kwargs)

        return watched

    @noting
    def _about_to_write(self, file: Any, folder: int | None = None) -> None:
        path = _whole(file, folder)
        if path is None:
            return
        self._tell_written(path)
        if self._kept is not None:
            self._kept.writing(path)

    def _tell_written(self, path: str) -> None:
        if not self.recorder.active:
            return
        known = path in self._written
        # What is read from it from now on is something else than before.
        self._files.discard(path)
        if not known and self._is_noteworthy(path, self._written):
            detail = {"path": path, "new": not os.path.lexists(path)}
            self.recorder.event("file_written", location=self.recorder.location(), detail=detail)

    @noting
    def _opened(self, file: Any) -> None:
        path = _whole(file, None)
        if path is not None and self._is_noteworthy(path, self._files):
            detail = {"path": path, **_size_and_time(path)}
            self.recorder.event("file_opened", location=self.recorder.location(), detail=detail)

    def _is_noteworthy(self, path: str, known: set[str]) -> bool:
        """Whether it is seen for the first time, and neither code, nor a library's or the system's own."""
        if path in known or len(known) >= _MOST_FILES or path.endswith((".py", ".pyc")):
            return False
        if path.startswith((*self._libraries, self._own_folder, "/proc/", "/sys/", "/dev/")):
            return False
        known.add(path)
        return True


def _whole(file: Any, folder: int | None) -> str | None:
    """The whole path of what a script names; None for descriptors and what is no path."""
    if not isinstance(file, str | bytes | os.PathLike):
        return None
    path = os.fsdecode(file)
    if folder is not None and not os.path.isabs(path):
        path = os.path.join(os.readlink(f"/proc/self/fd/{folder}"), path)
    return os.path.abspath(path)


def _both(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[str, str] | None:
    """The whole paths of what is given another name, and of that name."""
    given = dict(zip(("src", "dst"), args, strict=False)) | kwargs
    source = _whole(given.get("src"), given.get("src_dir_fd"))
    target = _whole(given.get("dst"), given.get("dst_dir_fd"))
    return None if source is None or target is None else (source, target)


def _size_and_time(path: str) -> dict[str, Any]:
    try:
        status = Path(path).stat()
    except OSError:
        return {"size": None, "mtime": None}
    return {"size": status.st_size, "mtime": status.st_mtime}
