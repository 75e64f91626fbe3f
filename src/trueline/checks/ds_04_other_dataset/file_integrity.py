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
from typing import Any

import numpy as np

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
        return examine(path)
    except (OSError, ValueError, struct.error):
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
        layout: Any = np.lib.format
        version = layout.read_magic(file)
        read = layout.read_array_header_1_0 if version == (1, 0) else layout.read_array_header_2_0
        shape, _, dtype = read(file)
        start = file.tell()
    return None if dtype.hasobject else _length(path, start + math.prod(shape) * dtype.itemsize)


def _gzip(path: Path) -> str | None:
    try:
        with gzip.open(path) as file:
            while file.read(1 << 20):
                pass
    except EOFError:
        return "its compressed content ends early"
    except (gzip.BadGzipFile, zlib.error) as problem:
        return f"its compressed content is damaged ({problem})"
    return None


def _zip(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
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
