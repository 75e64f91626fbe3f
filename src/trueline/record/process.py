"""What a script does outside of any framework: files it reads, seeds it sets, lines it prints."""

from __future__ import annotations

import builtins
import io
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from trueline.record.callsite import library_folders
from trueline.record.patches import Patches
from trueline.record.recorder import Recorder

_MOST_FILES = 10_000
_MOST_LINES = 5_000
_LONGEST_LINE = 300


class _Replacement:
    """Stands in for a builtin. A Python function would not do: kept in a class (`log = print`) it would become a method."""

    __wrapped__: Any

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __reduce__(self) -> Any:
        return self.__wrapped__.__reduce__()


class ProcessWatch:
    """Records `file_opened`, `file_written`, `seed` and `printed` events."""

    def __init__(self, recorder: Recorder, own_folder: str = "/proc/") -> None:
        self._recorder = recorder
        self._own_folder = own_folder
        self._files: set[str] = set()
        self._written: set[str] = set()
        self._lines = 0
        self._libraries = library_folders()

    def install(self, patches: Patches) -> None:
        opened = self._watched_open()
        patches.replace(builtins, "open", opened)
        patches.replace(io, "open", opened)
        patches.replace(builtins, "print", self._watched_print())
        patches.replace(random, "seed", self._watched_seed("random", random.seed))
        patches.replace(np.random, "seed", self._watched_seed("numpy", np.random.seed))

    def _watched_open(self) -> Any:
        original = io.open

        def watched(file: Any, mode: str = "r", *args: Any, **kwargs: Any) -> Any:
            writes = self._recorder.active and isinstance(mode, str) and bool({"w", "a", "x", "+"} & set(mode))
            if writes:
                self._note(self._opened_to_write, file)
            handle = original(file, mode, *args, **kwargs)
            if self._recorder.active and not writes:
                self._note(self._opened, file)
            return handle

        return _Replacement(watched)

    def _note(self, note: Callable[..., None], *args: Any) -> None:
        try:
            note(*args)
        except Exception as problem:  # noqa: BLE001 - recording must never break the script
            self._recorder.fail(problem)

    def _opened(self, file: Any) -> None:
        path = self._noteworthy(file, self._files)
        if path is not None:
            detail = {"path": path, **_size_and_time(path)}
            self._recorder.event("file_opened", location=self._recorder.location(), detail=detail)

    def _opened_to_write(self, file: Any) -> None:
        path = self._noteworthy(file, self._written)
        # What is read from it from now on is something else than before.
        self._files.discard(os.path.abspath(os.fspath(file)) if isinstance(file, str | os.PathLike) else "")  # noqa: PTH100
        if path is not None:
            detail = {"path": path, "new": not os.path.lexists(path)}
            self._recorder.event("file_written", location=self._recorder.location(), detail=detail)

    def _noteworthy(self, file: Any, known: set[str]) -> str | None:
        """The whole path of a file that is noted for the first time; None for code, libraries and the system's own."""
        if not isinstance(file, str | os.PathLike) or len(known) >= _MOST_FILES:
            return None
        path = os.path.abspath(os.fspath(file))  # noqa: PTH100 - PathLike of bytes is possible, and links must stay
        if not isinstance(path, str) or path in known or path.endswith((".py", ".pyc")):
            return None
        if path.startswith((*self._libraries, self._own_folder, "/proc/", "/sys/", "/dev/")):
            return None
        known.add(path)
        return path

    def _watched_print(self) -> Any:
        original = builtins.print

        def watched(*values: Any, **kwargs: Any) -> None:
            original(*values, **kwargs)
            if self._recorder.active and self._lines < _MOST_LINES:
                self._note(self._printed, values, kwargs.get("sep"))

        return _Replacement(watched)

    def _printed(self, values: tuple[Any, ...], separator: str | None) -> None:
        texts = [value for value in values if isinstance(value, str | int | float | np.number)]
        line = (" " if separator is None else separator).join(map(str, texts))
        if not any(character.isdigit() for character in line):
            return
        self._lines += 1
        self._recorder.event("printed", location=self._recorder.location(), detail={"text": line[:_LONGEST_LINE]})

    def _watched_seed(self, library: str, original: Any) -> Any:
        def watched(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            self._note(note_seed, self._recorder, library, args, kwargs)
            return result

        return _Replacement(watched)


def note_seed(recorder: Recorder, library: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Record that a library's global random stream was seeded."""
    if recorder.active:
        seed = args[0] if args else next(iter(kwargs.values()), None)
        known = seed if isinstance(seed, int | None) else str(seed)
        recorder.event("seed", location=recorder.location(), detail={"library": library, "seed": known})


def _size_and_time(path: str) -> dict[str, Any]:
    try:
        status = Path(path).stat()
    except OSError:
        return {"size": None, "mtime": None}
    return {"size": status.st_size, "mtime": status.st_mtime}
