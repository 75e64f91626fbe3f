"""`.npy` and `.npz`: arrays of numpy. Arrays of Python objects are refused: loading them could run code."""

from __future__ import annotations

import zipfile
import zlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trueline.errors import TruelineError
from trueline.tensorfiles.number_formats import NumberFormat, format_of_array
from trueline.tensorfiles.source import TensorSource, entry_of
from trueline.tensorfiles.stored import Region, Stored
from trueline.tensorfiles.zip_members import data_offset


class _Header:
    """The type and shape at the start of an array's file, and where its bytes begin."""

    def __init__(self, file: Any, name: str) -> None:
        try:
            version = np.lib.format.read_magic(file)  # type: ignore[no-untyped-call]
            read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
            self.shape, self.columns_first, self.dtype = read(file)  # type: ignore[no-untyped-call]
        except (ValueError, EOFError, zlib.error, zipfile.BadZipFile) as problem:
            raise TruelineError(f"{name} cannot be read as a NumPy array ({problem}). Copy or save it again.") from problem
        if self.dtype.hasobject:
            raise TruelineError(
                f"{name} holds Python objects, which can run code when they are loaded. Save plain arrays of numbers."
            )
        self.offset: int = file.tell()
        self.format: NumberFormat = format_of_array(self.dtype)

    @property
    def length(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64)) * int(self.dtype.itemsize)

    def stored(self, region: Region | bytes) -> Stored:
        big_endian = self.dtype.newbyteorder("<") != self.dtype and self.dtype.itemsize > 1 and self.dtype.kind != "V"
        if isinstance(region, Region) and not big_endian and not (self.columns_first and len(self.shape) > 1):
            return Stored(self.shape, self.format, [region])
        raw = self.dtype if big_endian else np.dtype(self.format.raw)
        flat: NDArray[Any] = np.frombuffer(region, raw) if isinstance(region, bytes) else region.array(raw.str)
        order: Any = "F" if self.columns_first else "C"
        return Stored(self.shape, self.format, array=flat.astype(self.format.raw, copy=False).reshape(self.shape, order=order))


def open_npy(path: Path) -> TensorSource:
    source = TensorSource(path, "NumPy array")
    with path.open("rb") as file:
        header = _Header(file, str(path))
    size = path.stat().st_size
    if size < header.offset + header.length:
        raise TruelineError(
            f"{path} is cut off: its array should end at byte {header.offset + header.length:,}, the file at {size:,}. "
            "Copy or save it again."
        )
    source.add(
        entry_of(path.stem, header.shape, header.format.name),
        lambda: header.stored(Region(path, header.offset, header.length)),
    )
    return source


def open_npz(path: Path) -> TensorSource:
    source = TensorSource(path, "NumPy arrays")
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                if member.filename.endswith(".npy"):
                    _add_member(source, archive, member)
    except (zipfile.BadZipFile, NotImplementedError) as problem:
        raise TruelineError(f"{path} cannot be read as an npz file ({problem}). Copy or save it again.") from problem
    return source


def _add_member(source: TensorSource, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    name = member.filename.removesuffix(".npy")
    try:
        with archive.open(member) as file:
            header = _Header(file, f"{source.path}: {name}")
    except (TruelineError, zipfile.BadZipFile, zlib.error, EOFError) as problem:
        source.problems.append(f"{source.path}: {name} cannot be read ({problem})")
        return
    if member.file_size < header.offset + header.length:
        source.problems.append(f"{source.path}: {name} is cut off.")
        return
    entry = entry_of(name, header.shape, header.format.name)
    if member.compress_type == zipfile.ZIP_STORED:
        source.add(entry, partial(_mapped, source.path, member, header))
    else:
        source.add(entry, partial(_unpacked, source.path, member, header))


def _mapped(path: Path, member: zipfile.ZipInfo, header: _Header) -> Stored:
    return header.stored(Region(path, data_offset(path, member) + header.offset, header.length))


def _unpacked(path: Path, member: zipfile.ZipInfo, header: _Header) -> Stored:
    try:
        with zipfile.ZipFile(path) as archive:
            return header.stored(archive.read(member)[header.offset :])
    except (zipfile.BadZipFile, zlib.error, EOFError) as problem:
        raise TruelineError(f"{path}: {member.filename} is damaged ({problem}). Copy or save it again.") from problem
