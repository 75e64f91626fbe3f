"""MindSpore's `.ckpt`: protocol buffers, read from their wire format.

    Checkpoint   1: value, repeated
    Value        1: tag (the name)   2: tensor   3: map tensor
    TensorProto  1: dims, repeated   2: tensor_type   3: tensor_content

A parameter of more than 512 MB is sliced: records with the same tag follow each other, each with the dims of the whole. A
file saved with `crc_check` ends in `crc_num` and ten bytes.
"""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec

from trueline import limits
from trueline.errors import TruelineError, Unreadable
from trueline.reading import open_regular, shortened, words_of
from trueline.tensorfiles.number_formats import number_format
from trueline.tensorfiles.source import TensorSource, entry_of
from trueline.tensorfiles.stored import Region, Stored

_FORMATS = {
    "Int8": "int8", "UInt8": "uint8", "Int16": "int16", "UInt16": "uint16", "Int32": "int32", "UInt32": "uint32",
    "Int64": "int64", "UInt64": "uint64", "Float16": "float16", "Float32": "float32", "Float64": "float64",
    "BFloat16": "bfloat16", "Bool": "bool", "Complex64": "complex64", "Complex128": "complex128",
}  # fmt: skip
_VARINT, _BYTES = 0, 2
_CHECKSUM, _CHECKSUM_LENGTH = b"crc_num", 17


class _Cut(Exception):
    """The file ends within a record; `name` is its tag as far as it was read."""

    def __init__(self, name: str) -> None:
        self.name = name


class _Record(msgspec.Struct):
    name: str = ""
    dims: list[int] = []
    kind: str = ""
    pieces: list[tuple[int, int]] = []
    is_map: bool = False


def open_mindspore(path: Path) -> TensorSource:
    source = TensorSource(path, "MindSpore checkpoint", "mindspore")
    size = path.stat().st_size
    if not size:
        raise TruelineError(f"{path} is empty. Copy or save it again.")
    with open_regular(path) as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        end = size - _CHECKSUM_LENGTH if content[-_CHECKSUM_LENGTH:-10] == _CHECKSUM else size
        joined: _Record | None = None
        try:
            for record in _records(content, end):
                if joined is not None and record.name == joined.name and not record.is_map:
                    joined.pieces += record.pieces
                    _check(joined)
                    continue
                _add(source, joined)
                joined = record
        except _Cut as cut:
            # Slices that were read before belong to the same parameter, which is not whole.
            if joined is not None and joined.name != cut.name:
                _add(source, joined)
            source.problem(f"{path} is cut off{f' within {cut.name}' if cut.name else ''}. Copy or save it again.")
        except (ValueError, UnicodeDecodeError) as problem:
            if joined is None:
                raise TruelineError(
                    f"{path} is no MindSpore checkpoint ({words_of(problem)}), or it is encrypted. Save it without enc_key."
                ) from problem
            _add(source, joined)
            source.problem(f"{path} is damaged after {joined.name} ({words_of(problem)}). Copy or save it again.")
        else:
            _add(source, joined)
    if not source.entries and not source.problems:
        raise TruelineError(f"{path} holds no tensors. Expected a checkpoint of mindspore.save_checkpoint.")
    return source


def _add(source: TensorSource, record: _Record | None) -> None:
    if record is None or record.kind == "str":
        return
    if record.is_map:
        source.problem(f"{source.path}: {record.name} is a map parameter, which cannot be read.")
        return
    length = sum(length for _, length in record.pieces)
    # A scalar may be written with the dims [0].
    shape = () if record.dims == [0] and length else tuple(record.dims)
    try:
        dtype = _FORMATS.get(record.kind, record.kind)
        entry = entry_of(record.name, shape, dtype)
        if entry.bytes != length:
            raise TruelineError(f"its shape {list(shape)} asks for {entry.bytes:,} bytes, and it has {length:,}")  # noqa: TRY301 - told below
    except TruelineError as problem:
        source.problem(f"{source.path}: {record.name} cannot be read: {problem}")
        return
    source.add(entry, partial(_stored, source.path, shape, dtype, record.pieces))


def _stored(path: Path, shape: tuple[int, ...], dtype: str, pieces: list[tuple[int, int]]) -> Stored:
    found = number_format(dtype)
    if not math.prod(shape):
        return Stored(shape, found)
    return Stored(shape, found, [Region(path, offset, length) for offset, length in pieces])


def _records(content: mmap.mmap, end: int) -> Iterator[_Record]:
    for field, kind, start, stop in _fields(content, 0, end, ""):
        if field != 1 or kind != _BYTES:
            raise ValueError(f"field {field} where parameters should be")
        yield _record(content, start, stop)


def _record(content: mmap.mmap, start: int, end: int) -> _Record:
    record = _Record()
    for field, kind, first, stop in _fields(content, start, end, record.name):
        if field == 1 and kind == _BYTES:
            record.name = content[first:stop].decode()
        elif field == 2 and kind == _BYTES:
            _tensor(content, first, stop, record)
        elif field == 3:
            record.is_map = True
    if not record.name:
        raise ValueError("a record without a name")
    return record


def _tensor(content: mmap.mmap, start: int, end: int, record: _Record) -> None:
    for field, kind, first, stop in _fields(content, start, end, record.name):
        if field == 1 and kind == _VARINT:
            record.dims.append(first)
        elif field == 1:
            place = first
            while place < stop:
                dim, place = _varint(content, place, stop, record.name)
                record.dims.append(dim)
                _check(record)
        elif field == 2:
            record.kind = content[first:stop].decode()
        elif field == 3:
            record.pieces.append((first, stop - first))
        _check(record)


def _check(record: _Record) -> None:
    if len(record.dims) > limits.DIMENSIONS or len(record.pieces) > limits.SLICES:
        raise Unreadable(
            f"{shortened(record.name)} has {len(record.dims):,} dimensions and {len(record.pieces):,} pieces, and no more than "
            f"{limits.DIMENSIONS} and {limits.SLICES:,} are read"
        )


def _fields(content: mmap.mmap, start: int, end: int, name: str) -> Iterator[tuple[int, int, int, int]]:
    """Number and kind of each field, and where its bytes lie; a plain number stands in the place of the first."""
    while start < end:
        key, start = _varint(content, start, end, name)
        value, after = _varint(content, start, end, name)
        if key & 7 == _VARINT:
            yield key >> 3, _VARINT, value, after
            start = after
        elif key & 7 == _BYTES:
            if after + value > end:
                raise _Cut(name or _tag_at(content, after, end))
            yield key >> 3, _BYTES, after, after + value
            start = after + value
        else:
            raise ValueError(f"wire type {key & 7}")


def _tag_at(content: mmap.mmap, start: int, end: int) -> str:
    """The name at the start of a record that is not whole."""
    try:
        length, first = _varint(content, start + 1, end, "")
        return content[first : first + length].decode() if content[start] == 0x0A and first + length <= end else ""
    except (_Cut, UnicodeDecodeError, IndexError):
        return ""


def _varint(content: mmap.mmap, place: int, end: int, name: str) -> tuple[int, int]:
    value = shift = 0
    while place < end:
        byte = content[place]
        value |= (byte & 0x7F) << shift
        place, shift = place + 1, shift + 7
        if byte < 0x80:
            return value, place
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
    raise _Cut(name)
