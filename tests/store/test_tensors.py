"""Whole tensors: every type and shape comes back as it was."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from trueline.adapters.pytorch.tensors import stored
from trueline.errors import RunNotFound
from trueline.store import read_tensors, write_tensors

DTYPES = [
    torch.float64, torch.float32, torch.float16, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.uint16,
    torch.uint32, torch.uint64, torch.bool, torch.complex64, torch.complex128,
]  # fmt: skip
SHAPES = [(), (0,), (3,), (2, 0, 3), (4, 1, 5)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_every_type_and_shape(tmp_path: Path, dtype: torch.dtype, shape: tuple[int, ...]) -> None:
    tensor = (torch.arange(1, 1 + int(np.prod(shape)), dtype=torch.float32).reshape(shape) % 2).to(dtype)
    write_tensors(tmp_path, 3, 0, {"output/fc/0": stored(tensor)})
    found = read_tensors(tmp_path, 3)["output/fc/0"]
    assert found.dtype == tensor.numpy().dtype
    assert found.shape == shape
    np.testing.assert_array_equal(found, tensor.numpy())


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_bfloat16_comes_as_float32(tmp_path: Path, shape: tuple[int, ...]) -> None:
    tensor = torch.randn(shape, generator=torch.Generator().manual_seed(0)).bfloat16()
    write_tensors(tmp_path, 0, 0, {"x": stored(tensor)})
    found = read_tensors(tmp_path, 0)["x"]
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, tensor.float().numpy())


def test_eight_bit_floats_come_as_their_bytes(tmp_path: Path) -> None:
    tensor = torch.tensor([[0.5, 1.0], [-2.0, 0.0]]).to(torch.float8_e4m3fn)
    write_tensors(tmp_path, 0, 0, {"x": stored(tensor)})
    np.testing.assert_array_equal(read_tensors(tmp_path, 0)["x"], tensor.view(torch.uint8).numpy())


def test_nan_and_infinities_are_kept(tmp_path: Path) -> None:
    tensor = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
    write_tensors(tmp_path, 0, 0, {"x": stored(tensor)})
    assert read_tensors(tmp_path, 0)["x"].tobytes() == tensor.numpy().tobytes()


def test_types_side_by_side_steps_and_ranks_apart(tmp_path: Path) -> None:
    write_tensors(
        tmp_path, 1, 0, {"a": stored(torch.ones(2, dtype=torch.complex128)), "b/é/0": stored(torch.zeros(1, dtype=torch.bool))}
    )
    write_tensors(tmp_path, 1, 1, {"a": stored(torch.full((2,), 7.0))})
    assert {name: found.dtype.name for name, found in read_tensors(tmp_path, 1).items()} == {"a": "complex128", "b/é/0": "bool"}
    assert read_tensors(tmp_path, 1, rank=1)["a"].tolist() == [7.0, 7.0]
    assert sorted(path.name for path in (tmp_path / "tensors").iterdir()) == [
        "step1-rank0.safetensors",
        "step1-rank1.safetensors",
    ]


def test_a_step_without_tensors_says_how_to_keep_them(tmp_path: Path) -> None:
    with pytest.raises(RunNotFound, match=r"trueline run --tensors 4 SCRIPT"):
        read_tensors(tmp_path, 4)
