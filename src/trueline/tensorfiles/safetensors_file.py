"""`.safetensors`: a header of JSON, then the bytes of all tensors."""

from __future__ import annotations

import math
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import TensorSpec, serialize_file

from trueline import limits
from trueline.errors import TruelineError
from trueline.reading import open_regular, words_of
from trueline.tensorfiles.number_formats import number_format
from trueline.tensorfiles.source import TensorSource, entry_of
from trueline.tensorfiles.stored import Region, Stored

_FORMATS = {
    "F64": "float64", "F32": "float32", "F16": "float16", "BF16": "bfloat16", "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2", "F8_E4M3FNUZ": "float8_e4m3fnuz", "F8_E5M2FNUZ": "float8_e5m2fnuz",
    "C64": "complex64", "I64": "int64", "I32": "int32", "I16": "int16", "I8": "int8",
    "U64": "uint64", "U32": "uint32", "U16": "uint16", "U8": "uint8", "BOOL": "bool",
}  # fmt: skip
_FRAMEWORKS = {"pt": "pytorch", "ms": "mindspore"}
# Colons of a tensor's description.
_COLONS = 4


class _Tensor(msgspec.Struct):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


_DESCRIPTION = msgspec.json.Decoder(_Tensor)


def open_safetensors(path: Path) -> TensorSource:
    header, start = _header(path)
    metadata = msgspec.json.decode(header.pop("__metadata__", b"null"), type=dict[str, str] | None) or {}
    source = TensorSource(path, "safetensors", _FRAMEWORKS.get(metadata.get("format", "")))
    source.metadata = metadata
    size = path.stat().st_size
    for name, described in header.items():
        try:
            tensor = _DESCRIPTION.decode(described)
            dtype = _FORMATS.get(tensor.dtype, tensor.dtype)
            entry = entry_of(name, tensor.shape, dtype)
        except (msgspec.DecodeError, UnicodeDecodeError, TruelineError) as problem:
            source.problem(f"{path}: {name} cannot be read ({words_of(problem)})")
            continue
        first, end = tensor.data_offsets
        if first < 0 or end - first != entry.bytes:
            source.problem(f"{path}: {name} has {end - first:,} bytes, and its shape asks for {entry.bytes:,}.")
        elif start + end > size:
            source.problem(f"{path} is cut off: {name} should end at byte {start + end:,}, the file at {size:,}.")
        else:
            source.add(entry, partial(_stored, path, start + first, tensor.shape, dtype))
    return source


def _stored(path: Path, offset: int, shape: tuple[int, ...], dtype: str) -> Stored:
    found = number_format(dtype)
    return Stored(shape, found, [Region(path, offset, math.prod(shape) * found.size)])


def _header(path: Path) -> tuple[dict[str, msgspec.Raw], int]:
    most = limits.SAFETENSORS_HEADER_BYTES
    with open_regular(path) as file:
        length = int.from_bytes(file.read(8), "little")
        content = file.read(length) if length <= most else b""
    if len(content) < length or not content.startswith(b"{"):
        raise TruelineError(
            f"{path} is no safetensors file, or its header is cut off, or longer than {most:,} bytes. Copy or save it again."
        )
    # Counted before any of it is decoded.
    if content.count(b":") > 2 * _COLONS * limits.TENSORS:
        raise TruelineError(f"{path} describes more than {limits.TENSORS:,} tensors, which is more than is read.")
    return msgspec.json.decode(content, type=dict[str, msgspec.Raw]), 8 + length


def write_safetensors(path: Path, weights: dict[str, tuple[str, NDArray[Any]]], framework: str | None = None) -> None:
    """Write tensors, each with its number format and as it lies in files (bfloat16 as uint16, eight-bit floats as uint8)."""
    raw = {name: np.ascontiguousarray(array) for name, (_, array) in weights.items()}
    specs = {
        name: TensorSpec(
            dtype=weights[name][0], shape=list(weights[name][1].shape), data_ptr=array.ctypes.data, data_len=array.nbytes
        )
        for name, array in raw.items()
    }
    words = {framework: word for word, framework in _FRAMEWORKS.items()}
    serialize_file(specs, str(path), {"format": words[framework]} if framework in words else None)
