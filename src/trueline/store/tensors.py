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
    specs = {
        name: TensorSpec(dtype=tensor.dtype, shape=list(tensor.shape), data_ptr=tensor.data.ctypes.data, data_len=tensor.data.nbytes)
        for name, tensor in tensors.items()
    }
    serialize_file(specs, str(partial))
    partial.replace(path)


def read_tensors(directory: Path, step: int, rank: int = 0) -> dict[str, NDArray[Any]]:
    """The kept tensors of a step, named `<role>/<module or parameter path>/<position>`; bfloat16 comes as float32,
    eight-bit floats as their bytes."""
    path = tensor_file(directory, step, rank)
    if not path.is_file():
        raise RunNotFound(
            f"No tensors were kept for step {step} in {directory}. Keep them with: trueline run --tensors {step} SCRIPT"
        )
    return {name: _array(kept["dtype"], kept["shape"], kept["data"]) for name, kept in deserialize(path.read_bytes())}  # type: ignore[no-untyped-call]


def _array(dtype: str, shape: list[int], data: bytes) -> NDArray[Any]:
    if dtype == "BF16":
        return (np.frombuffer(data, "<u2").astype(np.uint32) << 16).view(np.float32).reshape(shape)
    if dtype not in _DTYPES:
        # Eight-bit floats have no numpy dtype: their bytes are given.
        return np.frombuffer(data, "u1").reshape(shape)
    return np.frombuffer(data, _DTYPES[dtype]).reshape(shape)
