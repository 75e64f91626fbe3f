"""Which line of the user's own code is running: the first frame up the stack that is not library code."""

from __future__ import annotations

import linecache
import os
import site
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType
from typing import Any


def library_folders() -> tuple[str, ...]:
    """Folders whose code is not the user's: the standard library, installed packages and Trueline itself."""
    paths = sysconfig.get_paths()
    folders = {paths[key] for key in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders.update(site.getsitepackages())
    folders.add(site.getusersitepackages())
    folders.add(str(Path(__file__).resolve().parent.parent))
    return tuple(folder.rstrip(os.sep) + os.sep for folder in folders)


class CallSites:
    """Gives lines of the user's code small numbers, and keeps the rows that describe the new ones."""

    def __init__(self, cwd: str) -> None:
        self._cwd = cwd.rstrip(os.sep) + os.sep
        self._libraries = library_folders()
        # By file name, not by code object: equal functions of two files are equal code objects.
        self._is_user: dict[str, bool] = {}
        self._ids: dict[tuple[str, int], int] = {}
        self.new_rows: list[tuple[Any, ...]] = []

    def user_frame(self, frame: FrameType | None) -> FrameType | None:
        """The innermost frame of the user's code at or above `frame`."""
        is_user = self._is_user
        while frame is not None:
            file = frame.f_code.co_filename
            mine = is_user.get(file)
            if mine is None:
                mine = is_user[file] = self._belongs_to_user(file)
            if mine:
                return frame
            frame = frame.f_back
        return None

    def here(self, depth: int = 1) -> int | None:
        """The id of the user's line that is running now, looked for from the frame `depth` calls up."""
        return self.of_frame(self.user_frame(sys._getframe(depth)))

    def of_frame(self, frame: FrameType | None) -> int | None:
        if frame is None:
            return None
        line = frame.f_lineno or 0
        known = self._ids.get((frame.f_code.co_filename, line))
        return self._new(frame.f_code, line) if known is None else known

    def of_line(self, file: str, line: int, function: str | None = None) -> int | None:
        """The id of a line that is not known from a frame, as of code that was compiled; None for a library's."""
        if not self.is_user_file(file):
            return None
        known = self._ids.get((file, line))
        return self._new_line(file, line, function) if known is None else known

    def is_user_file(self, file: str) -> bool:
        mine = self._is_user.get(file)
        if mine is None:
            mine = self._is_user[file] = self._belongs_to_user(file)
        return mine

    def _new(self, code: CodeType, line: int) -> int:
        return self._new_line(code.co_filename, line, code.co_name)

    def _new_line(self, file: str, line: int, function: str | None) -> int:
        number = self._ids[file, line] = len(self._ids) + 1
        absolute = os.path.abspath(file)  # noqa: PTH100 - Path.resolve would follow links, which users do not write
        # A file name need not be text; what is stored is.
        shown = absolute.removeprefix(self._cwd).encode(errors="replace").decode()
        self.new_rows.append((number, shown, line, function, linecache.getline(file, line).strip() or None))
        return number

    def _belongs_to_user(self, file: str) -> bool:
        if file.startswith("<"):
            return False
        return not os.path.abspath(file).startswith(self._libraries)  # noqa: PTH100 - called for every code object; links kept
