"""The record of a rank while it is made: `rank<N>.journal`, rows in the order in which they were written.

A transaction of SQLite costs more than a short training step can spare, and an append does not. A frame holds the rows of
one commit: a length in four little-endian bytes, then the rows by table in MessagePack. Once written it is in the hands of
the operating system and survives the death of the process. When the run is over the journal is folded into `rank<N>.sqlite`:
by the writer, or, when that was killed, by the first reader.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec

from trueline import limits
from trueline.reading import open_regular

_STANDARD_ERROR = 2
_LENGTH = struct.Struct("<I")
Rows = dict[str, list[Any]]


def _plain(value: Any) -> Any:
    """Numbers of numpy come as python's own."""
    return value.item()


_encode = msgspec.msgpack.Encoder(enc_hook=_plain).encode
_decode = msgspec.msgpack.Decoder(Rows).decode


def beyond_standard_streams(descriptor: int) -> int:
    """The same file under a number that no library takes for standard output or error: where those are closed, a file that is
    opened gets their number, and whatever is printed into it."""
    if descriptor > _STANDARD_ERROR:
        return descriptor
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STANDARD_ERROR + 1)
    os.close(descriptor)
    return moved


class Journal:
    """Appends rows to a file of its own, which must not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
        self._descriptor = beyond_standard_streams(os.open(path, flags, 0o644))
        # Held until the end of this process, however it ends, so that nobody takes away a journal that is still written. Not
        # every file system has such locks; where it has not, readers cannot take one either.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self._size = 0
        self._file = os.fstat(self._descriptor)

    def append(self, rows: Rows) -> None:
        """Make rows durable, all of them or none."""
        if not self._is_ours(self._descriptor):
            raise OSError(f"{self.path}: the script has closed or removed it")
        content = _encode(rows)
        frame = _LENGTH.pack(len(content)) + content
        written = os.write(self._descriptor, frame)
        if written != len(frame):
            os.ftruncate(self._descriptor, self._size)
            raise OSError(f"{self.path}: only {written} of {len(frame)} bytes could be written. The disk is probably full.")
        self._size += written

    @property
    def size(self) -> int:
        return self._size

    def close(self) -> None:
        # The number is forgotten: the system gives it to the next file, which may be the script's.
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0 and self._is_ours(descriptor):
            os.close(descriptor)

    def _is_ours(self, descriptor: int) -> bool:
        """Whether the number still stands for a journal that somebody can find: a script that closes all descriptors, as daemons
        do, is given it again for a file of its own."""
        try:
            now = os.fstat(descriptor)
        except OSError:
            return False
        return now.st_nlink > 0 and now.st_ino == self._file.st_ino and now.st_dev == self._file.st_dev


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Keep everybody else from the journal; False when it is in use, or when that cannot be known."""
    # Over NFS only a file that is open for writing can be locked.
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            yield False
        else:
            yield True
    finally:
        os.close(descriptor)


def read_frames(path: Path, start: int = 0, decode: Callable[[bytes], Rows] = _decode) -> Iterator[tuple[int, Rows]]:
    """The complete frames from a place on, each with the place after it. One cut off by the writer's death is left out."""
    with open_regular(path) as file:
        # Where the file is damaged the length is any number: memory for it is not asked for.
        size = file.seek(0, os.SEEK_END)
        file.seek(start)
        while len(head := file.read(_LENGTH.size)) == _LENGTH.size:
            (length,) = _LENGTH.unpack(head)
            start += _LENGTH.size + length
            if start > size or length > limits.FRAME_BYTES:
                return
            try:
                rows = decode(file.read(length))
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                # Zeros or garbage where the machine itself went down: what came before is whole.
                return
            yield start, rows
