"""Whole tensors, on demand: one safetensors file per step and rank below `tensors/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import TensorSpec, deserialize, serialize_file

from trueline.errors import RunNotFound
from trueline.store.format import TENSOR_FOLDER

_DTYPES = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "C64": "<c8", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip


class StoredTensor(msgspec.Struct, frozen=True):
    """A tensor as raw bytes, so that every dtype of every framework can be kept: `dtype` in torch's words (`bfloat16`)."""

    dtype: str
    shape: tuple[int, ...]
    data: NDArray[np.uint8]


def tensor_file(directory: Path, step: int, rank: int) -> Path:
    return directory / TENSOR_FOLDER / f"step{step}-rank{rank}.safetensors"


def write_tensors(directory: Path, step: int, rank: int, tensors: dict[str, StoredTensor]) -> None:
    """Write the tensors of one step; the file appears under its name only when it is complete."""
    path = tensor_file(directory, step, rank)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    doubles = {name: "complex128" for name, tensor in tensors.items() if tensor.dtype == "complex128"}
    serialize_file({name: _spec(tensor) for name, tensor in tensors.items()}, str(partial), doubles)
    partial.replace(path)


def _spec(tensor: StoredTensor) -> TensorSpec:
    dtype, shape = tensor.dtype, list(tensor.shape)
    if dtype == "complex128":
        # Safetensors has no such type: pairs of doubles, and the type is told in the file's metadata.
        dtype, shape = "float64", [*shape, 2]
    return TensorSpec(dtype=dtype, shape=shape, data_ptr=tensor.data.ctypes.data, data_len=tensor.data.nbytes)


def read_tensors(directory: Path, step: int, rank: int = 0) -> dict[str, NDArray[Any]]:
    """The kept tensors of a step, named `<role>/<module or parameter path>/<position>`; bfloat16 comes as float32,
    eight-bit floats as their bytes."""
    path = tensor_file(directory, step, rank)
    if not path.is_file():
        raise RunNotFound(
            f"No tensors were kept for step {step} in {directory}. Keep them with: trueline run --tensors {step} SCRIPT"
        )
    content = path.read_bytes()
    found = {name: _array(kept["dtype"], kept["shape"], kept["data"]) for name, kept in deserialize(content)}  # type: ignore[no-untyped-call]
    for name in _metadata(content):
        found[name] = found[name].view("<c16").reshape(found[name].shape[:-1])
    return found


def _metadata(content: bytes) -> dict[str, str]:
    """The file starts with the length of its header, which is JSON."""
    length = int.from_bytes(content[:8], "little")
    metadata: dict[str, str] = msgspec.json.decode(content[8 : 8 + length]).get("__metadata__", {})
    return metadata


def _array(dtype: str, shape: list[int], data: bytes) -> NDArray[Any]:
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if dtype not in _DTYPES:
        # Eight-bit floats have no numpy dtype: their bytes are given.
        return np.frombuffer(data, "u1").reshape(shape)
    return np.frombuffer(data, _DTYPES[dtype]).reshape(shape)
