"""Where parameters get their content, and the snapshots of it."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import nn

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import small_net, train
from trueline.model import Parameter, Snapshot
from trueline.store import Run, read_tensors


def parameter(run: Run, path: str) -> Parameter:
    return next(found for found in run.parameters.values() if found.path == path)


def states(run: Run, path: str) -> list[Snapshot]:
    return run.snapshots[parameter(run, path).id]


# Loads


def test_a_load_before_the_first_call(recorded: Recorded) -> None:
    saved = small_net().state_dict()

    def script() -> None:
        model = small_net()
        model.load_state_dict(saved)
        model(torch.randn(2, 4))

    run = recorded(script)
    (event,) = run.events_of("load")
    kept = {name: event.detail[name] for name in ("keys", "missing", "unexpected", "changed", "of")}
    assert kept == {"keys": 4, "missing": [], "unexpected": [], "changed": 4, "of": "Sequential"}
    for found in run.parameters.values():
        assert found.loaded is not None
        assert found.loaded.source == "model.load_state_dict(saved)"


def test_a_load_that_misses_and_does_not_expect(recorded: Recorded) -> None:
    saved = small_net().state_dict()
    saved["3.weight"] = saved.pop("2.weight")

    def script() -> None:
        model = small_net()
        model(torch.randn(2, 4))
        model.load_state_dict(saved, strict=False)

    run = recorded(script)
    (event,) = run.events_of("load")
    assert event.subject == run.roots[0].id
    assert (event.detail["missing"], event.detail["unexpected"]) == (["2.weight"], ["3.weight"])
    assert event.detail["changed"] == 3
    assert parameter(run, "2.weight").loaded is None
    assert parameter(run, "0.weight").loaded is not None


def test_a_load_of_what_is_there_already_changes_nothing(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        model.load_state_dict(model.state_dict())

    (event,) = recorded(script).events_of("load")
    assert event.detail["changed"] == 0


def test_a_load_that_fails_fails_as_ever(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        with pytest.raises(RuntimeError, match="Missing key"):
            model.load_state_dict({})
        model.load_state_dict(model.state_dict())

    assert len(recorded(script).events_of("load")) == 1


def test_a_load_that_assigns_new_parameters(recorded: Recorded) -> None:
    saved = small_net().state_dict()

    def script() -> None:
        model = small_net()
        model.load_state_dict(saved, assign=True)
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=1)

    run = recorded(script)
    assert all(found.loaded is not None for found in run.parameters.values())
    assert all(held.parameter is not None for held in run.optimizer_parameters)


def test_a_load_into_a_part(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4))
        model[0].load_state_dict(nn.Linear(4, 4).state_dict())
        model(torch.randn(2, 4))

    run = recorded(script)
    assert parameter(run, "0.weight").loaded is not None
    assert parameter(run, "1.weight").loaded is None


# Init functions


def test_lines_of_init_functions(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        nn.init.zeros_(model[0].weight)
        nn.init.kaiming_normal_(model[2].weight)
        model[2].bias.data.fill_(0.1)
        model(torch.randn(2, 4))

    run = recorded(script)
    lines = {found.path: (found.initialised.source if found.initialised else None) for found in run.parameters.values()}
    assert lines["0.weight"] == "nn.init.zeros_(model[0].weight)"
    assert lines["2.weight"] == "nn.init.kaiming_normal_(model[2].weight)"
    assert lines["2.bias"] == "model[2].bias.data.fill_(0.1)"


def test_an_init_function_applied_to_every_module(recorded: Recorded) -> None:
    def constant(module: nn.Module) -> None:
        if isinstance(module, nn.Linear):
            nn.init.constant_(module.weight, 0.5)

    def script() -> None:
        model = small_net()
        model.apply(constant)
        model(torch.randn(2, 4))

    run = recorded(script)
    for path in ("0.weight", "2.weight"):
        initialised = parameter(run, path).initialised
        assert initialised is not None
        assert initialised.source == "nn.init.constant_(module.weight, 0.5)"


def test_a_fill_under_no_grad(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        with torch.no_grad():
            model[0].weight.zero_()
            model[2].weight.copy_(torch.ones(3, 6))
        model(torch.randn(2, 4))

    run = recorded(script)
    assert str(parameter(run, "0.weight").initialised.source) == "model[0].weight.zero_()"  # type: ignore[union-attr]
    assert str(parameter(run, "2.weight").initialised.source).startswith("model[2].weight.copy_")  # type: ignore[union-attr]


def test_memory_used_again_does_not_bring_its_old_line(recorded: Recorded) -> None:
    """Scratch tensors are filled and freed; parameters that get their memory were not filled there."""
    reused: list[str] = []

    class Free(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            scratch = [torch.empty(32, 32) for _ in range(300)]
            for tensor in scratch:
                tensor.fill_(1.0)
            addresses = {tensor.data_ptr() for tensor in scratch}
            del scratch, tensor
            self.weights = nn.ParameterList([torch.randn(32, 32) for _ in range(300)])
            reused.extend(f"weights.{place}" for place, one in enumerate(self.weights) if one.data_ptr() in addresses)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x @ self.weights[0]

    def script() -> None:
        model = Free()
        model(torch.randn(1, 32))

    run = recorded(script)
    assert reused, "the allocator is expected to give freed memory again"
    assert {path: parameter(run, path).initialised for path in reused} == dict.fromkeys(reused)


# Snapshots


def test_snapshots_over_the_run(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        for frozen in model[0].parameters():
            frozen.requires_grad_(False)
        train(model, torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1), steps=3)

    run = recorded(script)
    trained, frozen = states(run, "2.weight"), states(run, "0.weight")
    assert [state.step for state in trained] == [-1, 0, 1, 2, 3], "before, at each sampled step, and at the end"
    assert [state.gradient for state in trained] == [None, "value", "value", "value", None]
    assert [state.optimizer for state in trained[1:]] == [1] * 4
    assert trained[0].digest == trained[1].digest, "a snapshot is taken before the optimizer's step"
    assert len({state.digest for state in trained}) == 4
    assert [state.gradient for state in frozen[1:-1]] == ["none"] * 3
    assert len({state.digest for state in frozen}) == 1
    assert not any(state.trainable for state in frozen)
    assert not any(state.optimizer for state in frozen)
    assert all(state.trainable for state in trained)


def test_zero_gradients_are_told_from_none(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        out = model(torch.randn(2, 4))
        (out * 0.0).sum().backward()
        model[0].weight.grad = None
        optimizer.step()

    run = recorded(script)
    assert [state.gradient for state in states(run, "2.weight")][1] == "zero"
    assert [state.gradient for state in states(run, "0.weight")][1] == "none"


def test_row_spread(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        nn.init.constant_(model[0].weight, 0.25)
        with torch.no_grad():
            model[2].weight.copy_(torch.arange(18.0).reshape(3, 6))
        model(torch.randn(2, 4))

    run = recorded(script)
    assert states(run, "0.weight")[0].row_spread == 0.0
    assert states(run, "2.weight")[0].row_spread == 12.0
    assert states(run, "2.bias")[0].row_spread is None


def test_buffers_are_followed(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=2)

    run = recorded(script)
    mean = parameter(run, "1.running_mean")
    assert mean.buffer
    assert len({state.digest for state in run.snapshots[mean.id]}) == 3
    assert parameter(run, "1.num_batches_tracked").dtype == "int64"


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.complex64])
def test_parameters_of_other_types(recorded: Recorded, dtype: torch.dtype) -> None:
    class Scale(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3, 4, dtype=dtype))
            self.empty = nn.Parameter(torch.ones(0, 4, dtype=dtype))
            self.scalar = nn.Parameter(torch.ones((), dtype=dtype))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x * self.weight * self.scalar).abs().float().sum()

    def script() -> None:
        model = Scale()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(2):
            model(torch.ones(3, 4)).backward()
            optimizer.step()

    run = recorded(script, tensors=[0])
    assert {found.dtype for found in run.parameters.values()} == {str(dtype).removeprefix("torch.")}
    assert states(run, "weight")[0].row_spread == 0.0
    assert run.stats("gradient", parameter(run, "weight").id)


def test_kept_tensors_are_whole(recorded: Recorded) -> None:
    before: dict[str, torch.Tensor] = {}

    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        train(model, optimizer, steps=1)
        before.update({name: value.clone() for name, value in model.state_dict().items()})
        train(model, optimizer, steps=1)

    run = recorded(script, tensors=[1])
    kept = read_tensors(Path(run.directory), 1)
    for name, value in before.items():
        assert (kept[f"parameter/model.{name}/0"] == value.numpy()).all()
    assert any(name.startswith("gradient/model.0.weight") for name in kept)
    assert any(name.startswith("output/model.2") for name in kept)
