"""NumPy files, safetensors, folders of them, and the folders of dump tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from trueline.errors import TruelineError
from trueline.tensorfiles import open_tensors
from trueline.tensorfiles.stored import Region

RANDOM = np.random.default_rng(0)


class Evil:
    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return exec, (f"open({str(self.target)!r}, 'w').close()",)


@pytest.mark.parametrize("dtype", ["<f4", ">f4", "<f8", "<f2", "<i8", ">i2", "u1", "?", "<c8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy(tmp_path: Path, dtype: str, order: Any) -> None:
    values = np.asarray(RANDOM.normal(size=(3, 4, 5)) * 5, order=order).astype(dtype, order=order)
    np.save(tmp_path / "a.npy", values)
    source = open_tensors(tmp_path / "a.npy")
    assert source.entries[0].shape == (3, 4, 5)
    assert np.array_equal(source.read("a"), values)
    assert np.array_equal(source.stored("a").values(7, 31), values.reshape(-1)[7:31])


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_npz(tmp_path: Path, save: Any) -> None:
    arrays = {
        "a": RANDOM.normal(size=(3, 4)),
        "layer/b": RANDOM.normal(size=7).astype("f4"),
        "turned": RANDOM.normal(size=(3, 4)).T,
    }
    save(tmp_path / "a.npz", **arrays)
    source = open_tensors(tmp_path / "a.npz")
    assert {entry.name: entry.shape for entry in source.entries} == {name: array.shape for name, array in arrays.items()}
    assert all(np.array_equal(source.read(name), array) for name, array in arrays.items())


def test_bfloat16_as_numpy_files_hold_it(tmp_path: Path) -> None:
    values = torch.randn(10).bfloat16()
    np.save(tmp_path / "a.npy", values.view(torch.int16).numpy().view("V2"))
    source = open_tensors(tmp_path / "a.npy")
    assert source.entries[0].dtype == "bfloat16"
    assert np.array_equal(source.read("a"), values.float().numpy())


def test_object_arrays_are_never_loaded(tmp_path: Path) -> None:
    trap = tmp_path / "trap"
    np.save(tmp_path / "a.npy", np.array([Evil(trap)], dtype=object))
    np.savez(tmp_path / "b.npz", good=np.ones(2), bad=np.array([Evil(trap)], dtype=object))
    with pytest.raises(TruelineError, match=r"a\.npy holds Python objects"):
        open_tensors(tmp_path / "a.npy")
    source = open_tensors(tmp_path / "b.npz")
    assert [entry.name for entry in source.entries] == ["good"]
    assert "bad" in source.problems[0]
    assert "Python objects" in source.problems[0]
    assert not trap.exists()


def test_safetensors(tmp_path: Path) -> None:
    tensors = {
        "a": torch.randn(3, 4), "b": torch.randn(5).bfloat16(), "c": torch.arange(4), "d": torch.randn(2).half(),
        "e": torch.randn(6).to(torch.float8_e5m2), "f": torch.tensor(True), "g": torch.zeros(0, 3),
    }  # fmt: skip
    save_file(tensors, tmp_path / "a.safetensors", metadata={"format": "pt"})
    source = open_tensors(tmp_path / "a.safetensors")
    assert source.framework == "pytorch"
    for name, tensor in tensors.items():
        expected = tensor.float() if tensor.dtype in {torch.bfloat16, torch.float8_e5m2} else tensor
        assert np.array_equal(source.read(name), expected.numpy()), name


def damaged_folder(folder: Path) -> dict[str, Any]:
    """Every kind of file, whole and cut off; gives what is whole."""
    folder.mkdir()
    whole = {name: RANDOM.normal(size=(40, 5)).astype("f4") for name in ("npy", "npz", "pt", "st")}
    np.save(folder / "npy.npy", whole["npy"])
    np.savez(folder / "npz.npz", x=whole["npz"])
    torch.save({"x": torch.from_numpy(whole["pt"])}, folder / "pt.pt")
    save_file({"x": torch.from_numpy(whole["st"])}, folder / "st.safetensors")
    for name in ("npy.npy", "npz.npz", "pt.pt", "st.safetensors"):
        content = (folder / name).read_bytes()
        (folder / f"cut_{name}").write_bytes(content[: len(content) // 2])
    return whole


def test_the_rest_of_a_folder_is_read(tmp_path: Path) -> None:
    whole = damaged_folder(tmp_path / "mine")
    source = open_tensors(tmp_path / "mine")
    names = {"npy": "npy", "npz": "npz.x", "pt": "pt.x", "st": "st.x"}
    assert {entry.name for entry in source.entries} == set(names.values())
    assert all(np.array_equal(source.read(names[kind]), array) for kind, array in whole.items())
    assert len(source.problems) == 4
    for name in ("cut_npy.npy", "cut_npz.npz", "cut_pt.pt", "cut_st.safetensors"):
        assert any(name in problem for problem in source.problems), name


def test_names_of_files_in_folders(tmp_path: Path) -> None:
    (tmp_path / "layer1").mkdir()
    np.save(tmp_path / "layer1" / "conv.npy", np.ones(2))
    torch.save(torch.ones(3), tmp_path / "layer1" / "out.pt")
    for part in (1, 2):
        save_file({f"w{part}": torch.ones(4)}, tmp_path / f"model-0000{part}-of-00002.safetensors")
    source = open_tensors(tmp_path)
    assert [entry.name for entry in source.entries] == ["layer1.conv", "layer1.out", "w1", "w2"]


def test_numbered_arrays_of_troubleshooter(tmp_path: Path) -> None:
    for number, name in enumerate(["conv", "relu", *["conv"] * 9]):
        np.save(tmp_path / f"{number}_{name}.npy", np.full(2, number))
    source = open_tensors(tmp_path)
    assert [entry.name for entry in source.entries][:4] == ["conv", "relu", "conv#2", "conv#3"]
    assert [int(source.read(entry.name)[0]) for entry in source.entries] == list(range(11))


def test_a_dump_of_mindspore(tmp_path: Path) -> None:
    folder = tmp_path / "rank_0" / "net" / "0" / "0"
    folder.mkdir(parents=True)
    np.save(folder / "ReLU.Default_relu-ReLU-op3.0.0.1700000002.output.0.DefaultFormat.npy", np.ones(3))
    np.save(folder / "Conv2D.Conv2D-op12.7.0.1700000001.output.0.DefaultFormat.npy", np.zeros(3))
    np.save(folder / "Conv2D.Conv2D-op12.7.0.1700000001.input.1.NCHW.float32.npy", np.zeros(3))
    source = open_tensors(tmp_path)
    assert source.kind == "MindSpore dump"
    assert [entry.name.rpartition("/")[2] for entry in source.entries] == [
        "Conv2D.Conv2D-op12.input.1", "Conv2D.Conv2D-op12.output.0", "ReLU.Default_relu-ReLU-op3.output.0",
    ]  # fmt: skip


def write_msprobe(folder: Path, *, tensors: bool, factor: float = 1.0) -> None:
    """A dump as msprobe lays it out: one call of a module, with and without its tensors."""
    below = folder / "step0" / "rank0"
    (below / "dump_tensor_data").mkdir(parents=True)
    data: dict[str, Any] = {}
    for call in ("Module.conv.Conv2d.forward.0", "Module.fc.Linear.forward.0"):
        values = torch.arange(6.0).reshape(2, 3) * factor
        described = {
            "type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3], "Max": values.max().item(),
            "Min": values.min().item(), "Mean": values.mean().item(), "Norm": values.norm().item(), "requires_grad": False,
        }  # fmt: skip
        if tensors:
            described["data_name"] = f"{call}.output.0.pt"
            torch.save(values, below / "dump_tensor_data" / f"{call}.output.0.pt")
        data[call] = {"input_args": [{"type": "int", "value": 3}], "input_kwargs": {}, "output": [described]}
    content = {"task": "tensor" if tensors else "statistics", "level": "L0", "framework": "pytorch", "data": data}
    (below / "dump.json").write_text(json.dumps(content))


def test_a_dump_of_msprobe(tmp_path: Path) -> None:
    write_msprobe(tmp_path / "a", tensors=True)
    write_msprobe(tmp_path / "b", tensors=False)
    names = ["step0/rank0/Module.conv.Conv2d.forward.0.output.0", "step0/rank0/Module.fc.Linear.forward.0.output.0"]
    source = open_tensors(tmp_path / "a")
    assert [entry.name for entry in source.entries] == names
    assert source.read(names[0]).tolist() == [[0, 1, 2], [3, 4, 5]]
    statistics = open_tensors(tmp_path / "b")
    assert [entry.name for entry in statistics.entries] == names
    assert statistics.entries[0].statistics == {"max": 5.0, "min": 0.0, "mean": 2.5, "norm": pytest.approx(7.4162)}
    with pytest.raises(TruelineError, match="only statistics"):
        statistics.read(names[0])


def test_the_process_is_no_part_of_a_name(tmp_path: Path) -> None:
    """Without ranks, msprobe calls the folder after the process that dumped."""
    write_msprobe(tmp_path, tensors=True)
    (tmp_path / "step0" / "rank0").rename(tmp_path / "step0" / "proc4711")
    assert open_tensors(tmp_path).entries[0].name == "step0/Module.conv.Conv2d.forward.0.output.0"


def test_a_missing_tensor_of_a_dump_is_a_problem(tmp_path: Path) -> None:
    write_msprobe(tmp_path, tensors=True)
    next(tmp_path.rglob("*fc*.pt")).unlink()
    source = open_tensors(tmp_path)
    assert len(source.entries) == 1
    assert "fc" in source.problems[0]


def test_what_is_no_file_of_tensors(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello")
    (tmp_path / "empty").mkdir()
    for name, words in (("a.txt", "not known"), ("empty", "no file of tensors"), ("gone.pth", "There is no file")):
        with pytest.raises(TruelineError, match=words):
            open_tensors(tmp_path / name)


def test_pages_that_were_read_are_given_back(tmp_path: Path) -> None:
    """A map of a large tensor must not count as memory of the process when it has been read."""
    size = 100_000_000
    (tmp_path / "a.raw").write_bytes(b"\x01" * size)
    region = Region(tmp_path / "a.raw", 0, size)
    values = region.array("u1")
    for start in range(0, size, 1_000_000):
        assert values[start : start + 1_000_000].sum() == 1_000_000
        region.release(start)
    mapped = next(
        block for block in Path("/proc/self/smaps").read_text().split("VmFlags") if "a.raw" in block
    )  # fmt: skip
    resident = next(line for line in mapped.splitlines()[::-1] if line.startswith("Rss"))
    assert int(resident.split()[1]) < 60_000
