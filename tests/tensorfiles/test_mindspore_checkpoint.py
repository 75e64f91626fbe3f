"""MindSpore's checkpoints are read without MindSpore."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import nn
from mindspore.train import serialization

from trueline.errors import TruelineError
from trueline.tensorfiles import open_tensors


def network() -> Any:
    return nn.SequentialCell(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.Flatten(), nn.Dense(16, 2), nn.Embedding(5, 3))


def arrays_of(path: Path) -> dict[str, Any]:
    return {name: value.asnumpy() for name, value in ms.load_checkpoint(str(path)).items() if isinstance(value, ms.Parameter)}


@pytest.mark.parametrize("crc", [False, True], ids=["plain", "crc"])
def test_what_save_checkpoint_writes(tmp_path: Path, crc: bool) -> None:
    path = tmp_path / "a.ckpt"
    ms.save_checkpoint(network(), str(path), crc_check=crc, append_dict={"epoch_num": 3, "lr": 0.1, "note": "text"})
    source, expected = open_tensors(path), arrays_of(path)
    assert (source.framework, source.problems) == ("mindspore", [])
    assert {entry.name for entry in source.entries} == set(expected)
    for name, array in expected.items():
        assert np.array_equal(source.read(name), array), name


def test_number_formats(tmp_path: Path) -> None:
    kinds = [ms.float64, ms.float32, ms.float16, ms.bfloat16, ms.int64, ms.int32, ms.int16, ms.int8, ms.uint8, ms.bool_]
    values = np.random.default_rng(0).normal(size=(3, 5)) * 10
    saved = [{"name": str(kind), "data": ms.Tensor(values, ms.float32).astype(kind)} for kind in kinds]
    ms.save_checkpoint(saved, str(tmp_path / "a.ckpt"))
    source = open_tensors(tmp_path / "a.ckpt")
    assert len(source.entries) == len(kinds)
    for each in saved:
        assert np.array_equal(source.read(each["name"]), each["data"].float().asnumpy()), each["name"]


def test_parameters_sliced_over_several_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MindSpore slices at 512 MB; its own setting is lowered so that a small file has slices."""
    monkeypatch.setattr(serialization, "SLICE_SIZE", 1)
    values = np.random.default_rng(0).normal(size=(300, 7)).astype(np.float32)
    saved = [{"name": name, "data": ms.Tensor(values * factor)} for name, factor in (("a", 1), ("b", 2))]
    saved.append({"name": "c", "data": ms.Tensor(values).astype(ms.bfloat16)})
    ms.save_checkpoint(saved, str(tmp_path / "a.ckpt"))
    source = open_tensors(tmp_path / "a.ckpt")
    assert [entry.shape for entry in source.entries] == [(300, 7)] * 3
    assert np.array_equal(source.read("b"), values * 2)
    assert np.array_equal(source.stored("a").values(200, 900), values.reshape(-1)[200:900])
    assert np.array_equal(source.read("c"), saved[2]["data"].float().asnumpy())


def test_cut_off_at_any_place(tmp_path: Path) -> None:
    path = tmp_path / "a.ckpt"
    ms.save_checkpoint(network(), str(path))
    whole, expected = path.read_bytes(), arrays_of(path)
    cut = tmp_path / "cut.ckpt"
    told = 0
    for length in range(1, len(whole), 7):
        cut.write_bytes(whole[:length])
        try:
            source = open_tensors(cut)
        except TruelineError as problem:
            assert "cut.ckpt" in str(problem)  # noqa: PT017 - longer ones can be read in part
            continue
        told += len(source.entries) < len(expected)
        assert source.problems or len(source.entries) <= len(expected)
        assert all(np.array_equal(source.read(entry.name), expected[entry.name]) for entry in source.entries)
    assert told


def test_no_checkpoint_at_all(tmp_path: Path) -> None:
    (tmp_path / "a.ckpt").write_bytes(b"this is a text and no checkpoint\n" * 10)
    with pytest.raises(TruelineError, match=r"a\.ckpt"):
        open_tensors(tmp_path / "a.ckpt")
