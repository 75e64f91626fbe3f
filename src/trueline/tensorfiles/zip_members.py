"""Where the bytes of a zip's uncompressed members lie in its file."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path

from trueline.errors import TruelineError

# A local header: signature, 22 bytes that the directory at the end repeats, lengths of the name and of the extra field.
_LOCAL = struct.Struct("<4s22xHH")


def data_offset(path: Path, member: zipfile.ZipInfo) -> int:
    """The extra field before the bytes has another length than the one in the directory, so it has to be looked up."""
    with path.open("rb") as file:
        file.seek(member.header_offset)
        header = file.read(_LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
        raise TruelineError(f"{path} is damaged: {member.filename} is not where its directory says. Copy or save it again.")
    _, name, extra = _LOCAL.unpack(header)
    return member.header_offset + _LOCAL.size + int(name) + int(extra)
