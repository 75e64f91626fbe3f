"""`trueline compare`, `params` and `convert` on real checkpoints of both frameworks."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mindspore as ms
import numpy as np
import pytest
import torch
from builders import build_run, trueline
from mindspore import nn as ms_nn
from torch import nn


class TorchNet(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.embedding = nn.Embedding(7, 6)
        self.norm = nn.LayerNorm(6)
        self.conv1d = nn.Conv1d(4, 5, 3)
        self.fc = nn.Linear(6, 6)


class MindSporeNet(ms_nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.conv = ms_nn.Conv2d(1, 4, 3, has_bias=True)
        self.bn = ms_nn.BatchNorm2d(4)
        self.embedding = ms_nn.Embedding(7, 6)
        self.norm = ms_nn.LayerNorm((6,))
        self.conv1d = ms_nn.Conv1d(4, 5, 3, has_bias=True)
        self.fc = ms_nn.Dense(6, 6)


def saved(path: Path, seed: int = 0, **changes: Any) -> dict[str, torch.Tensor]:
    torch.manual_seed(seed)
    state = TorchNet().state_dict() | changes
    torch.save(state, path)
    return state


def compared(folder: Path, *words: str, code: int) -> dict[str, Any]:
    done = trueline("compare", *words, "--json", "out.json", cwd=folder)
    assert done.returncode == code, done.stdout + done.stderr
    document: dict[str, Any] = json.loads((folder / "out.json").read_text())
    assert document["equal"] is (code == 0)
    return document


def test_equal_checkpoints(tmp_path: Path) -> None:
    state = saved(tmp_path / "a.pth")
    torch.save({"model": state, "epoch": 2}, tmp_path / "b.pth")
    document = compared(tmp_path, "a.pth", "b.pth", code=0)
    assert document["counts"] == {
        "pairs": len(state),
        "equal": len(state),
        "equal_bits": len(state),
        "different": 0,
        "unmatched": 0,
    }


def test_two_checkpoints_of_one_training(tmp_path: Path) -> None:
    state = saved(tmp_path / "a.pth")
    broken = state["fc.bias"].clone()
    broken[1] = math.nan
    saved(tmp_path / "b.pth", **{"conv.weight": state["conv.weight"] + 1, "fc.bias": broken})
    done = trueline("compare", "a.pth", "b.pth", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 1
    assert "2 changed" in done.stdout
    assert "NaN: 0 against 1" in done.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["same_training"]
    assert [each["mine"] for each in document["pairs"] if not each["equal"]] == ["fc.bias", "conv.weight"]


def test_half_precision_is_within_the_tolerance(tmp_path: Path) -> None:
    state = saved(tmp_path / "a.pth")
    torch.save({name: value.half() if value.is_floating_point() else value for name, value in state.items()}, tmp_path / "b.pth")
    assert compared(tmp_path, "a.pth", "b.pth", code=0)["counts"]["equal_bits"] < len(state)
    compared(tmp_path, "a.pth", "b.pth", "--tolerance", "0", code=1)


def test_what_has_no_counterpart_is_not_equal(tmp_path: Path) -> None:
    state = saved(tmp_path / "a.pth")
    torch.save(state | {"extra.weight": torch.ones(9, 9)}, tmp_path / "b.pth")
    document = compared(tmp_path, "a.pth", "b.pth", code=1)
    assert document["unmatched"] == {"mine": [], "reference": ["extra.weight"]}
    assert document["counts"]["different"] == 0


def test_a_map_is_written_and_obeyed(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(2, 2), "b": torch.zeros(2, 2)}, tmp_path / "a.pth")
    torch.save({"a": torch.zeros(2, 2), "b": torch.ones(2, 2)}, tmp_path / "b.pth")
    compared(tmp_path, "a.pth", "b.pth", "--write-map", "map.json", code=1)
    assert json.loads((tmp_path / "map.json").read_text()) == {"a": "a", "b": "b"}
    (tmp_path / "map.json").write_text('{"a": "b", "b": "a"}')
    compared(tmp_path, "a.pth", "b.pth", "--map", "map.json", code=0)


def test_a_folder_with_files_that_are_cut_off(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        for name in ("x", "y"):
            np.save(tmp_path / folder / f"{name}.npy", np.arange(100.0))
    content = (tmp_path / "b" / "y.npy").read_bytes()
    (tmp_path / "b" / "y.npy").write_bytes(content[:300])
    document = compared(tmp_path, "a", "b", code=1)
    assert "y.npy" in document["problems"][0]
    assert [each["mine"] for each in document["pairs"] if each["equal"]] == ["x"]
    assert document["unmatched"]["mine"] == ["y"]


@pytest.mark.parametrize("name", ["cut.pth", "cut.ckpt", "cut.safetensors", "cut.npz", "cut.npy", "gone.pth"])
def test_what_cannot_be_read_is_one_message(tmp_path: Path, name: str) -> None:
    saved(tmp_path / "a.pth")
    if name.startswith("cut"):
        (tmp_path / name).write_bytes(b"\x93NUMPY" if name.endswith("npy") else (tmp_path / "a.pth").read_bytes()[:600])
    done = trueline("compare", "a.pth", name, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert name in done.stderr
    assert "Traceback" not in done.stderr


def test_two_runs_as_they_are(tmp_path: Path) -> None:
    build_run(tmp_path / ".trueline" / "runs" / "first", [1.0])
    done = trueline("compare", "first", "first", "--json", "found.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["schema"] == "trueline.comparison/1"
    assert found["comparison"]["first_divergence"] is None
    assert "Only what both runs tell of themselves" in found["comparison"]["limits"]


def test_a_run_and_a_file_cannot_be_compared(tmp_path: Path) -> None:
    build_run(tmp_path / ".trueline" / "runs" / "first", [1.0])
    saved(tmp_path / "a.pth")
    done = trueline("compare", "first", "a.pth", cwd=tmp_path)
    assert (done.returncode, "Expected two runs, or two checkpoints" in done.stderr) == (2, True)


def test_parameters_of_a_run_beside_a_checkpoint(tmp_path: Path) -> None:
    build_run(tmp_path / ".trueline" / "runs" / "first", [1.0])
    state = {
        "fc1.weight": torch.ones(32, 64),
        "fc1.bias": torch.ones(32),
        "fc2.weight": torch.ones(10, 32),
        "fc2.bias": torch.ones(10),
    }
    torch.save(state, tmp_path / "a.pth")
    done = trueline("params", "first", "a.pth", "--json", "out.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads((tmp_path / "out.json").read_text())
    assert document["mine"]["trainable"] == document["reference"]["values"] == 32 * 64 + 32 + 320 + 10
    torch.save(state | {"fc3.bias": torch.ones(3)}, tmp_path / "b.pth")
    done = trueline("params", "first", "b.pth", cwd=tmp_path)
    assert done.returncode == 1
    assert "no counterpart" in done.stdout


def test_to_mindspore_and_back(tmp_path: Path) -> None:
    """What is written loads into the real cell, and comes back as it was."""
    state = saved(tmp_path / "a.pth", **{"bn.running_mean": torch.randn(4)})
    done = trueline("convert", "a.pth", "--to", "mindspore", "b.ckpt", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    cell = MindSporeNet()
    missing, unused = ms.load_param_into_net(cell, ms.load_checkpoint(str(tmp_path / "b.ckpt")))
    assert (missing, unused) == ([], [])
    assert np.array_equal(cell.bn.moving_mean.asnumpy(), state["bn.running_mean"].numpy())
    assert np.array_equal(cell.embedding.embedding_table.asnumpy(), state["embedding.weight"].numpy())
    compared(tmp_path, "b.ckpt", "a.pth", code=0)
    done = trueline("convert", "b.ckpt", "--to", "pytorch", "c.pth", "--like", "a.pth", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    loaded = torch.load(tmp_path / "c.pth")
    TorchNet().load_state_dict(loaded)
    assert all(torch.equal(loaded[name], state[name]) for name in loaded)


def test_safetensors_keep_names_and_number_formats(tmp_path: Path) -> None:
    state = {"a.weight": torch.randn(3, 4).bfloat16(), "b": torch.arange(3), "c": torch.randn(5).to(torch.float8_e4m3fn)}
    torch.save(state, tmp_path / "a.pth")
    assert trueline("convert", "a.pth", "--to", "safetensors", "b.safetensors", cwd=tmp_path).returncode == 0
    from safetensors.torch import load_file

    loaded = load_file(tmp_path / "b.safetensors")
    assert all(torch.equal(loaded[name].view(torch.uint8), value.view(torch.uint8)) for name, value in state.items())
    assert trueline("convert", "b.safetensors", "--to", "pytorch", "c.pth", cwd=tmp_path).returncode == 0
    compared(tmp_path, "a.pth", "c.pth", "--tolerance", "0", code=0)


def test_nothing_is_written_over(tmp_path: Path) -> None:
    saved(tmp_path / "a.pth")
    (tmp_path / "b.pth").write_text("precious")
    done = trueline("convert", "a.pth", "--to", "pytorch", "b.pth", cwd=tmp_path)
    assert (done.returncode, (tmp_path / "b.pth").read_text()) == (2, "precious")
    assert "--force" in done.stderr
    assert trueline("convert", "a.pth", "--to", "pytorch", "b.pth", "--force", cwd=tmp_path).returncode == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.pth", "b.pth"]
    done = trueline("convert", "a.pth", "--to", "mindspore", "b.pth", cwd=tmp_path)
    assert (done.returncode, ".ckpt" in done.stderr) == (2, True)


def test_weights_that_the_target_lacks_are_told(tmp_path: Path) -> None:
    state = saved(tmp_path / "a.pth")
    torch.save(state | {"head.weight": torch.ones(9, 9)}, tmp_path / "like.pth")
    done = trueline("convert", "a.pth", "--to", "pytorch", "b.pth", "--like", "like.pth", cwd=tmp_path)
    assert done.returncode == 1
    assert "head.weight" in done.stdout
