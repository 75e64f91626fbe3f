"""Zip archives: opened within limits, and where the bytes of their uncompressed members lie in the file."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from trueline import limits
from trueline.errors import Unreadable
from trueline.reading import Bounded, open_regular, shortened

# A local header: signature, 22 bytes that the directory at the end repeats, lengths of the name and of the extra field.
_LOCAL = struct.Struct("<4s22xHH")
_PIECE = 1 << 20


@contextmanager
def open_zip(path: Path) -> Iterator[zipfile.ZipFile]:
    with open_regular(path) as file:
        bounded: Any = Bounded(file, limits.ZIP_DIRECTORY_BYTES)
        with zipfile.ZipFile(bounded) as archive:
            yield archive


def is_usual(member: zipfile.ZipInfo) -> bool:
    """Whether it is packed as frameworks do it. Other ways unpack without a limit to what comes out at once."""
    return member.compress_type in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def open_member(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> IO[bytes]:
    """A member, to be read piece by piece."""
    if not is_usual(member):
        raise Unreadable(f"{shortened(member.filename)} is packed in a way (method {member.compress_type}) that is not used here")
    return archive.open(member)


def unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> memoryview:
    """The content of a packed member."""
    most = max(limits.UNPACKED_BYTES, limits.UNPACKED_TIMES * member.compress_size)
    if member.file_size > most:
        raise Unreadable(
            f"{shortened(member.filename)} would unpack to {member.file_size:,} bytes from {member.compress_size:,}, "
            f"and no more than {most:,} are read. Save it without compression."
        )
    content = bytearray()
    with open_member(archive, member) as file:
        while piece := file.read(_PIECE):
            content += piece
    return memoryview(content).toreadonly()


def data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """The extra field before the bytes has another length than the one in the directory, so it has to be looked up."""
    with open_regular(path) as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
        raise Unreadable(
            f"{path} is damaged: {shortened(member.filename)} is not where its directory says. Copy or save it again."
        )
    _, name, extra = _LOCAL.unpack(header)
    return member.header_offset + _LOCAL.size + int(name) + int(extra)
