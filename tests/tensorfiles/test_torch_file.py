"""Files of torch.save are read without PyTorch, and without running what is in them."""

from __future__ import annotations

import pickle
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from trueline.errors import TruelineError
from trueline.tensorfiles import open_tensors

ZIP_AND_OLD = pytest.mark.parametrize("zipped", [True, False], ids=["zip", "old"])


def save(content: Any, path: Path, *, zipped: bool = True) -> Path:
    torch.save(content, path, _use_new_zipfile_serialization=zipped)
    return path


def trained() -> tuple[torch.nn.Module, torch.optim.Optimizer]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(144, 2))
    optimizer = torch.optim.Adam(net.parameters())
    net(torch.randn(2, 1, 8, 8)).sum().backward()
    optimizer.step()
    return net, optimizer


@ZIP_AND_OLD
def test_a_state_dict(tmp_path: Path, zipped: bool) -> None:
    net, _ = trained()
    source = open_tensors(save(net.state_dict(), tmp_path / "a.pth", zipped=zipped))
    assert (source.framework, source.model, source.problems) == ("pytorch", "", [])
    assert [entry.name for entry in source.entries] == list(net.state_dict())
    for name, tensor in net.state_dict().items():
        assert np.array_equal(source.read(name), tensor.numpy())


@ZIP_AND_OLD
def test_the_model_within_a_checkpoint_is_told(tmp_path: Path, zipped: bool) -> None:
    net, optimizer = trained()
    content = {"epoch": 3, "optimizer": optimizer.state_dict(), "model": net.state_dict(), "best": 0.5, "args": [1, (2, None)]}
    source = open_tensors(save(content, tmp_path / "a.pth", zipped=zipped))
    assert source.model == "model"
    assert [entry.name for entry in source.model_entries] == list(net.state_dict())
    moments = optimizer.state_dict()["state"][0]["exp_avg"]
    assert np.array_equal(source.read("optimizer.state.0.exp_avg"), moments.numpy())


@pytest.mark.parametrize("name", ["state_dict", "model_state_dict", "net", "generator"])
def test_other_names_of_the_model(tmp_path: Path, name: str) -> None:
    net, optimizer = trained()
    source = open_tensors(save({"optimizer": optimizer.state_dict(), name: net.state_dict()}, tmp_path / "a.pt"))
    assert source.model == name


@ZIP_AND_OLD
def test_offsets_strides_and_shared_storage(tmp_path: Path, zipped: bool) -> None:
    base = torch.randn(6, 8)
    views = {
        "whole": base, "part": base[2:5], "turned": base.t(), "window": base[1:4, 2:7].t(), "spread": base[:, :1].expand(6, 4),
        "scalar": base[3, 3], "none": base[:0], "last": torch.randn(2, 3, 4, 5).contiguous(memory_format=torch.channels_last),
    }  # fmt: skip
    source = open_tensors(save(views, tmp_path / "a.pt", zipped=zipped))
    for name, tensor in views.items():
        assert np.array_equal(source.read(name), tensor.numpy()), name
        flat = tensor.numpy().reshape(-1)
        assert np.array_equal(source.stored(name).values(1, max(1, flat.size - 1)), flat[1 : max(1, flat.size - 1)]), name


@ZIP_AND_OLD
@pytest.mark.parametrize(
    "dtype",
    "float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128 float8_e4m3fn float8_e5m2 "
    "float8_e4m3fnuz float8_e5m2fnuz".split(),
)
def test_number_formats(tmp_path: Path, dtype: str, zipped: bool) -> None:
    kind = getattr(torch, dtype)
    tensor = (torch.randn(64) * 10).to(kind)
    source = open_tensors(save({"x": tensor}, tmp_path / "a.pt", zipped=zipped))
    expected = tensor.float() if dtype == "bfloat16" or dtype.startswith("float8") else tensor
    assert source.entries[0].dtype == dtype
    assert np.array_equal(source.read("x"), expected.numpy())


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"])
def test_all_codes_of_eight_bit_floats(tmp_path: Path, dtype: str) -> None:
    tensor = torch.arange(256, dtype=torch.int16).to(torch.uint8).view(getattr(torch, dtype))
    source = open_tensors(save({"x": tensor}, tmp_path / "a.pt"))
    assert np.array_equal(source.read("x"), tensor.float().numpy(), equal_nan=True)


def test_a_bare_tensor_and_a_parameter(tmp_path: Path) -> None:
    source = open_tensors(save(torch.arange(6).reshape(2, 3), tmp_path / "activations.pt"))
    assert [entry.name for entry in source.entries] == ["activations"]
    assert source.read("activations").tolist() == [[0, 1, 2], [3, 4, 5]]
    kept = {"a": torch.nn.Parameter(torch.ones(2)), "b": torch.nn.Parameter(torch.ones(2), requires_grad=False)}
    source = open_tensors(save(kept, tmp_path / "parameters.pt"))
    assert [entry.trainable for entry in source.entries] == [True, False]


class Evil:
    """What an attacker puts into a pickle: loading it makes a file."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return exec, (f"open({str(self.target)!r}, 'w').close()",)


class EvilState:
    """The same, hidden in the state that a known class is given."""

    def __init__(self, target: Path) -> None:
        self.target = target

    def __reduce__(self) -> Any:
        return OrderedDict, (), {"_metadata": Evil(self.target)}


@ZIP_AND_OLD
@pytest.mark.parametrize("place", ["alone", "nested", "key", "state", "metadata"])
def test_a_pickle_is_never_run(tmp_path: Path, place: str, zipped: bool) -> None:
    trap = tmp_path / "trap"
    state = OrderedDict(a=torch.ones(3))
    contents: dict[str, Any] = {
        "alone": Evil(trap),
        "nested": {"model": state, "extra": {"x": [1, (2, {"y": Evil(trap)})]}},
        "key": {(1, Evil(trap)): torch.ones(1)},
        "state": {"model": state, "extra": EvilState(trap)},
        "metadata": state,
    }
    state._metadata = Evil(trap) if place == "metadata" else {}  # type: ignore[attr-defined]
    path = save(contents[place], tmp_path / "a.pth", zipped=zipped)
    with pytest.raises(TruelineError, match=r"builtin.*\.exec") as refused:
        open_tensors(path)
    assert str(path) in str(refused.value)
    assert not trap.exists()
    # The trap is a real one.
    torch.load(path, weights_only=False)
    assert trap.exists()


def test_a_whole_model_is_refused_with_advice(tmp_path: Path) -> None:
    with pytest.raises(TruelineError, match=r"torch\.nn\.modules\.linear\.Linear.*state_dict"):
        open_tensors(save(torch.nn.Linear(2, 2), tmp_path / "a.pt"))


@pytest.mark.parametrize("protocol", range(6))
def test_a_plain_pickle_is_no_checkpoint(tmp_path: Path, protocol: int) -> None:
    (tmp_path / "a.pth").write_bytes(pickle.dumps({"a": 1}, protocol=protocol))
    with pytest.raises(TruelineError, match=r"no file of torch\.save"):
        open_tensors(tmp_path / "a.pth")


@ZIP_AND_OLD
def test_cut_off_at_any_place(tmp_path: Path, zipped: bool) -> None:
    """A message that names the file, whatever is missing; what an old file still holds is read."""
    net, _ = trained()
    whole = save(net.state_dict(), tmp_path / "a.pth", zipped=zipped).read_bytes()
    path = tmp_path / "cut.pth"
    for length in range(0, len(whole) - 1, max(1, len(whole) // 60)):
        path.write_bytes(whole[:length])
        try:
            source = open_tensors(path)
        except TruelineError as problem:
            assert "cut.pth" in str(problem)  # noqa: PT017 - some lengths leave tensors that can be read
        else:
            assert source.problems
            assert all(np.array_equal(source.read(entry.name), net.state_dict()[entry.name].numpy()) for entry in source.entries)


def test_damaged_pickles_are_one_message(tmp_path: Path) -> None:
    whole = bytearray(save({"a": torch.ones(3)}, tmp_path / "a.pth", zipped=False).read_bytes())
    random = np.random.default_rng(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for place in random.integers(14, len(whole), 4):
            damaged[place] = random.integers(256)
        (tmp_path / "b.pth").write_bytes(damaged)
        try:
            source = open_tensors(tmp_path / "b.pth")
            for entry in source.entries:
                source.read(entry.name)
        except TruelineError as problem:
            assert "b.pth" in str(problem)  # noqa: PT017 - many damages change a value only
