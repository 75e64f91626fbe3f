"""The border between files that may come from anywhere and the rest: opened without waiting, read within limits, refused by name.

Every reader of a file works inside of `reading`. Formats are read by NumPy, zipfile, SQLite, Arrow and decoders of our own,
and a damaged file can raise nearly anything in them; beyond this border there is only TruelineError.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import IO

from trueline import limits
from trueline.errors import TruelineError, Unreadable

COPY_AGAIN = "Copy or save it again."
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}


@contextmanager
def reading(path: Path | str, advice: str = COPY_AGAIN, error: type[TruelineError] = Unreadable) -> Iterator[None]:
    """Whatever goes wrong inside becomes one message that names the file and says what to do."""
    try:
        yield
    except BrokenPipeError:
        # Of whoever stopped reading what is printed: no file is damaged.
        raise
    except TruelineError as problem:
        named = str(path) in str(problem)
        if type(problem) is Unreadable and not (named and issubclass(Unreadable, error)):
            raise error(str(problem) if named else f"{path} cannot be read ({problem}). {advice}") from problem
        if type(problem) is TruelineError and not named:
            raise error(f"{path}: {problem}") from problem
        raise
    except Exception as problem:  # the border: decoders of damaged files raise nearly anything
        raise error(f"{path} cannot be read ({words_of(problem)}). {advice}") from problem


def words_of(problem: BaseException) -> str:
    """What went wrong, in one line of some length. What is no text is left out: the repr of a damaged object can be endless."""
    if isinstance(problem, OSError) and problem.strerror:
        text = problem.strerror
    elif isinstance(problem, UnicodeError) or (problem.args and isinstance(problem.args[0], str)):
        text = str(problem)
    else:
        text = ""
    return shortened(" ".join(text[: 4 * limits.MESSAGE_CHARACTERS].split()) or type(problem).__name__)


def shortened(text: str) -> str:
    return text if len(text) <= limits.MESSAGE_CHARACTERS else f"{text[: limits.MESSAGE_CHARACTERS]}…"


def check_regular(path: Path) -> os.stat_result:
    """Refuse pipes, sockets, devices and folders: opening them may wait for ever, and they have no end."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "no file")
        raise Unreadable(f"{path} is {kind}. Expected a file.")
    return status


def open_regular(path: Path) -> BufferedReader:
    """A file for reading. What it is is asked of what was opened, which does not wait for the other end of a pipe."""
    check_regular(path)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise Unreadable(f"{path} is no file any more.")
    return os.fdopen(descriptor, "rb")


def read_whole(path: Path, most: int) -> bytes:
    """All of a file that is to be held in memory."""
    with open_regular(path) as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise Unreadable(f"{path} is larger than {most:,} bytes, which no such file is. {COPY_AGAIN}")
    return content


class Bounded:
    """An open file of which no more than `most` bytes are read at once: what a length in a file says is asked of the memory
    before it is known whether so much is there."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._most = most

    def read(self, size: int = -1, /) -> bytes:
        content = self._file.read(self._most + 1 if size is None or size < 0 else min(size, self._most + 1))
        if len(content) > self._most:
            raise Unreadable(f"a part of it is larger than {self._most:,} bytes")
        return content

    def readline(self, size: int = -1, /) -> bytes:
        line = self._file.readline(self._most + 1 if size is None or size < 0 else min(size, self._most + 1))
        if len(line) > self._most:
            raise Unreadable(f"a line of it is longer than {self._most:,} bytes")
        return line

    def tell(self) -> int:
        return self._file.tell()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        return self._file.seek(offset, whence)

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        self._file.close()
