"""What a file says of itself: lengths in headers, checksums inside of archives, end markers. A copy that was cut off shows."""

from __future__ import annotations

import csv
import gzip
import math
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

from trueline import limits
from trueline.errors import TruelineError
from trueline.reading import check_regular, reading
from trueline.tensorfiles.array_header import read_array_header
from trueline.tensorfiles.zip_members import is_usual, open_zip

_IDX_SIZES = {8: 1, 9: 1, 11: 2, 12: 4, 13: 4, 14: 8}
_TAIL = 1 << 16


def damage_of(path: Path) -> str | None:
    """What is wrong with a file, in words; None when nothing is, or when its kind says nothing of itself."""
    name = path.name.lower()
    examine: Callable[[Path], str | None] | None = next(
        (function for endings, function in _KINDS if name.endswith(endings)), _idx if "-ubyte" in name else None
    )
    if examine is None:
        return None
    try:
        with reading(path):
            check_regular(path)
            return examine(path)
    except TruelineError:
        return None


def _idx(path: Path) -> str | None:
    """The format of MNIST: type, number of axes, and the length of each, before the values."""
    with path.open("rb") as file:
        head = file.read(4)
        if len(head) < 4 or head[:2] != b"\0\0" or head[2] not in _IDX_SIZES:
            return None
        lengths = struct.unpack(f">{head[3]}I", file.read(4 * head[3]))
    expected = 4 + 4 * len(lengths) + math.prod(lengths) * _IDX_SIZES[head[2]]
    return _length(path, expected)


def _length(path: Path, expected: int) -> str | None:
    size = path.stat().st_size
    if size == expected:
        return None
    return f"its header announces {expected:,} bytes and it has {size:,}"


def _npy(path: Path) -> str | None:
    with path.open("rb") as file:
        header = read_array_header(file, str(path))
    return _length(path, header.offset + header.length)


def _gzip(path: Path) -> str | None:
    try:
        left = max(limits.STREAMED_BYTES, limits.STREAMED_TIMES * path.stat().st_size)
        with gzip.open(path) as file:
            while (piece := file.read(1 << 20)) and left > 0:
                left -= len(piece)
    except EOFError:
        return "its compressed content ends early"
    except (gzip.BadGzipFile, zlib.error) as problem:
        return f"its compressed content is damaged ({problem})"
    return None


def _zip(path: Path) -> str | None:
    try:
        with open_zip(path) as archive:
            members = archive.infolist()
            most = max(limits.STREAMED_BYTES, limits.STREAMED_TIMES * path.stat().st_size)
            if not all(map(is_usual, members)) or sum(member.file_size for member in members) > most:
                return None
            broken = archive.testzip()
    except zipfile.BadZipFile as problem:
        return f"it is not a complete zip archive ({problem})"
    return None if broken is None else f"the checksum of {broken} in it is wrong"


def _png(path: Path) -> str | None:
    return None if b"IEND" in _end(path) else "it has no end marker (IEND)"


def _jpeg(path: Path) -> str | None:
    return None if b"\xff\xd9" in _end(path) else "it has no end marker (EOI)"


def _end(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL))
        return file.read()


def _table(path: Path) -> str | None:
    """A last line without its end and with fewer fields than all others."""
    end = _end(path)
    if not end or end.endswith((b"\n", b"\r")):
        return None
    separator = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        first = next(csv.reader(file, delimiter=separator), [])
    lines = end.decode(errors="replace").splitlines()
    if len(lines) < 3 or len(first) < 2:
        return None
    before, last = next(csv.reader([lines[-2]], delimiter=separator)), next(csv.reader([lines[-1]], delimiter=separator))
    if len(before) != len(first) or len(last) >= len(first):
        return None
    return f"its last line breaks off after {len(last)} of {len(first)} fields"


_KINDS: list[tuple[tuple[str, ...], Callable[[Path], str | None]]] = [
    ((".gz",), _gzip),
    ((".zip", ".npz"), _zip),
    ((".npy",), _npy),
    ((".png",), _png),
    ((".jpg", ".jpeg"), _jpeg),
    ((".csv", ".tsv"), _table),
]
