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
from trueline.reading import open_regular, reading, words_of
from trueline.tensorfiles.array_header import ArrayHeader, read_array_header
from trueline.tensorfiles.number_formats import format_of_array
from trueline.tensorfiles.source import TensorSource, entry_of
from trueline.tensorfiles.stored import Region, Stored
from trueline.tensorfiles.zip_members import data_offset, open_member, open_zip, unpacked


def open_npy(path: Path) -> TensorSource:
    source = TensorSource(path, "NumPy array")
    with open_regular(path) as file:
        header = read_array_header(file, str(path))
    size = path.stat().st_size
    if size < header.offset + header.length:
        raise TruelineError(
            f"{path} is cut off: its array should end at byte {header.offset + header.length:,}, the file at {size:,}. "
            "Copy or save it again."
        )
    source.add(
        entry_of(path.stem, header.shape, format_of_array(header.dtype).name),
        lambda: _stored(header, Region(path, header.offset, header.length)),
    )
    return source


def open_npz(path: Path) -> TensorSource:
    source = TensorSource(path, "NumPy arrays")
    with open_zip(path) as archive:
        for member in archive.infolist():
            if member.filename.endswith(".npy"):
                _add_member(source, archive, member)
    return source


def _add_member(source: TensorSource, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> None:
    name = member.filename.removesuffix(".npy")
    where = f"{source.path}: {name}"
    try:
        with reading(where), open_member(archive, member) as file:
            header = read_array_header(file, where)
            found = format_of_array(header.dtype)
    except TruelineError as problem:
        source.problem(str(problem))
        return
    if member.file_size < header.offset + header.length:
        source.problem(f"{where} is cut off.")
        return
    entry = entry_of(name, header.shape, found.name)
    if member.compress_type == zipfile.ZIP_STORED:
        source.add(entry, partial(_mapped, source.path, member, header))
    else:
        source.add(entry, partial(_unpacked, source.path, member, header))


def _mapped(path: Path, member: zipfile.ZipInfo, header: ArrayHeader) -> Stored:
    return _stored(header, Region(path, data_offset(path, member) + header.offset, header.length))


def _unpacked(path: Path, member: zipfile.ZipInfo, header: ArrayHeader) -> Stored:
    try:
        with open_zip(path) as archive:
            return _stored(header, unpacked(archive, member)[header.offset :][: header.length])
    except (zipfile.BadZipFile, zlib.error, EOFError) as problem:
        raise TruelineError(f"{path}: {member.filename} is damaged ({words_of(problem)}). Copy or save it again.") from problem


def _stored(header: ArrayHeader, values: Region | memoryview) -> Stored:
    dtype, found = header.dtype, format_of_array(header.dtype)
    big_endian = dtype.newbyteorder("<") != dtype and dtype.itemsize > 1 and dtype.kind != "V"
    if isinstance(values, Region) and not big_endian and not header.columns_first:
        return Stored(header.shape, found, [values])
    raw = dtype if big_endian else np.dtype(found.raw)
    flat: NDArray[Any] = np.frombuffer(values, raw) if isinstance(values, memoryview) else values.array(raw.str)
    order: Any = "F" if header.columns_first else "C"
    return Stored(header.shape, found, array=flat.astype(found.raw, copy=False).reshape(header.shape, order=order))
