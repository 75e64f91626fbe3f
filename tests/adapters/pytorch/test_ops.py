"""The traced operations of the first steps: names, where inputs come from, lines, and what was never used."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.overrides import TorchFunctionMode

from tests.adapters.pytorch.conftest import Recorded
from tests.adapters.pytorch.loops import loader, small_net, train
from trueline.model import Op
from trueline.store import Run

# What measuring a tensor takes; the script below never calls them.
OWN_OPERATIONS = {
    "aminmax",
    "vector_norm",
    "linalg_vector_norm",
    "count_nonzero",
    "isfinite",
    "contiguous",
    "numpy",
    "std",
    "unique",
}


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.fc(x)
        hidden.sigmoid()
        return hidden.softmax(dim=1)


def one_step(run: Run, step: int = 0) -> list[Op]:
    return [op for op in run.ops if op.step == step]


def test_names_inputs_lines_and_use(recorded: Recorded) -> None:
    def script() -> None:
        model = Net()
        x, y = torch.randn(2, 4), torch.tensor([0, 1])
        probabilities = model(x)
        loss = F.nll_loss(torch.log(probabilities), y)
        loss.backward()

    run = recorded(script)
    ops = one_step(run)
    assert [op.name for op in ops if op.name in {"linear", "sigmoid", "softmax", "log", "nll_loss"}] == [
        "linear", "sigmoid", "softmax", "log", "nll_loss",
    ]  # fmt: skip
    found = {op.name: op for op in ops}
    weight, bias = (parameter.id for parameter in run.parameters.values())
    assert found["linear"].inputs == [f"b{run.batches[0].seq}", f"p{weight}", f"p{bias}"]
    assert found["softmax"].inputs == [f"o{found['linear'].seq}"]
    assert found["log"].inputs == [f"o{found['softmax'].seq}"]
    assert found["nll_loss"].inputs[0] == f"o{found['log'].seq}"
    assert {name: found[name].used for name in ("linear", "sigmoid", "softmax", "log", "nll_loss")} == {
        "linear": True, "sigmoid": False, "softmax": True, "log": True, "nll_loss": True,
    }  # fmt: skip
    assert found["softmax"].settings["dim"] == 1
    assert found["softmax"].outputs == [{"shape": [2, 3], "dtype": "float32", "requires_grad": True}]
    lines = {name: str(op.location.source) for name, op in found.items() if op.location}
    assert lines["linear"] == "hidden = self.fc(x)"
    assert lines["softmax"] == "return hidden.softmax(dim=1)"
    assert lines["nll_loss"] == "loss = F.nll_loss(torch.log(probabilities), y)"
    modules = {module.path: module.id for module in run.modules.values()}
    assert found["linear"].module == modules["fc"]
    assert found["softmax"].module == modules[""]
    assert found["log"].module is None
    (backward,) = run.events_of("backward")
    assert backward.detail["of"] == f"o{found['nll_loss'].seq}"


def test_the_loss_call_knows_the_operation_that_made_its_input(recorded: Recorded) -> None:
    def script() -> None:
        model = Net()
        F.cross_entropy(model(torch.randn(2, 4)), torch.tensor([0, 1])).backward()

    run = recorded(script)
    softmax = next(op for op in run.ops if op.name == "softmax")
    assert run.loss_calls[0].input["op"] == f"o{softmax.seq}"


def test_operators_have_plain_names(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Linear(2, 2)
        a = model(torch.randn(3, 2))
        b = 2 - (1 + a) * 3 / 4
        b += 1
        b = b @ torch.eye(2)
        (-b).pow(2).mean().backward()

    names = [op.name for op in one_step(recorded(script))]
    for name in ("linear", "add", "mul", "truediv", "sub", "matmul", "neg", "pow", "mean"):
        assert any(name in {found, found.replace("true_divide", "truediv").replace("div", "truediv")} for found in names), (
            name,
            names,
        )


def test_cuts_of_the_graph(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        out = model(torch.randn(2, 4))
        kept = out.detach()
        values = out.detach().numpy()
        rebuilt = torch.tensor(values)
        same = out.data
        (out.sum() + kept.sum() + rebuilt.sum() + same.sum()).backward()

    run = recorded(script)
    ops = one_step(run)
    linear = [op for op in ops if op.name == "linear"][-1]
    cuts = [op for op in ops if op.name in {"detach", "data", "numpy"}]
    assert [op.name for op in cuts] == ["detach", "detach", "numpy", "data"]
    assert [op.inputs for op in cuts if op.name != "numpy"] == [[f"o{linear.seq}"]] * 3
    assert all(not output["requires_grad"] for op in cuts for output in op.outputs)
    assert [str(op.location.source) for op in cuts if op.location] == [
        "kept = out.detach()", "values = out.detach().numpy()", "values = out.detach().numpy()", "same = out.data",
    ]  # fmt: skip


def test_inputs_from_a_loader_are_known(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for x, y in loader(count=4):
            F.cross_entropy(model(x), y).backward()
            optimizer.step()

    run = recorded(script)
    ops = one_step(run)
    batch = f"b{run.batches[0].seq}"
    loss = next(op for op in ops if op.name == "cross_entropy")
    assert loss.inputs[1] == batch
    first = next(op for op in ops if op.name == "linear")
    assert first.inputs[0] == batch


def test_the_recorders_own_operations_are_not_traced(recorded: Recorded) -> None:
    """Several roots, hand-made batches and targets: all of them are measured while the trace is on."""

    def script() -> None:
        encoder, decoder, criterion = nn.Linear(4, 3), nn.Linear(3, 3), nn.CrossEntropyLoss()
        optimizer = torch.optim.SGD([*encoder.parameters(), *decoder.parameters()], lr=0.1)
        for _ in range(2):
            first = encoder(torch.randn(5, 4))
            second = decoder(torch.randn(5, 3))
            loss = criterion(first + second, torch.randint(0, 3, (5,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    ops = recorded(script).ops
    names = {op.name for op in ops}
    assert not names & OWN_OPERATIONS
    assert "detach" not in names, "a detach that the script never wrote looks like a cut of its graph"


def test_only_the_first_steps_are_traced(recorded: Recorded) -> None:
    def script() -> None:
        model = small_net()
        train(model, torch.optim.SGD(model.parameters(), lr=0.1), steps=5)

    run = recorded(script)
    assert {op.step for op in run.ops} == {0, 1}
    assert [op.name for op in one_step(run, 0)] == [op.name for op in one_step(run, 1)]


def test_in_place_operations_are_marked(recorded: Recorded) -> None:
    def script() -> None:
        model = nn.Linear(2, 2)
        out = model(torch.randn(3, 2))
        out.mul_(2.0)
        out.sum().backward()

    product = next(op for op in recorded(script).ops if op.name == "mul")
    assert product.settings["inplace"] is True


class Doubling(TorchFunctionMode):
    """A mode of the user's own that changes results: what it does must stay as it is."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        return result * 2 if getattr(func, "__name__", "") == "relu" else result


@pytest.mark.parametrize("outside", [True, False])
def test_modes_of_the_user_still_work(recorded: Recorded, outside: bool) -> None:
    results: list[float] = []

    def script() -> None:
        model = nn.Linear(2, 2, bias=False)
        nn.init.ones_(model.weight)
        x = torch.ones(1, 2)
        for _ in range(3):
            if outside:
                with Doubling():
                    loss = torch.relu(model(x)).sum()
                    loss.backward()
            else:
                out = model(x)
                with Doubling():
                    loss = torch.relu(out).sum()
                    loss.backward()
            results.append(loss.item())

    run = recorded(script)
    assert results == [8.0, 8.0, 8.0]
    assert len(run.steps) == 3
    assert torch.overrides._len_torch_function_stack() == 0
