"""Whole tensors, on demand: one safetensors file per step and rank below `tensors/`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray
from safetensors import TensorSpec, serialize_file

from trueline.errors import RunNotFound, Unreadable
from trueline.reading import reading
from trueline.store.format import TENSOR_FOLDER
from trueline.tensorfiles import Stored
from trueline.tensorfiles.safetensors_file import open_safetensors


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
    with reading(path, "Record the run again."):
        source = open_safetensors(path)
        if source.problems:
            raise Unreadable(source.problems[0])
        doubles = source.metadata
        return {entry.name: _array(source.stored(entry.name), is_double=entry.name in doubles) for entry in source.entries}


def _array(stored: Stored, *, is_double: bool) -> NDArray[Any]:
    if is_double:
        # Safetensors has no such type: pairs of doubles, and the type is told in the file's metadata.
        return stored.whole_raw().view("<c16").reshape(stored.shape[:-1])
    return stored.whole() if stored.format.name == "bfloat16" else stored.whole_raw()
