"""Tensors that no textbook has, wherever a watch may meet them: recorded or passed over, and nothing fails."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from trueline.store import Run

Recorded = Callable[..., Run]


class Marked(Tensor):
    """A subclass as libraries have them: every operation on it gives it again."""


def freed(*shape: int) -> Tensor:
    """As sharded trainings leave tensors between two uses: their storage holds nothing."""
    tensor = torch.randn(*shape)
    tensor.untyped_storage().resize_(0)
    return tensor


def in_inference() -> Tensor:
    with torch.inference_mode():
        return torch.randn(4, 3)


def quietly(make: Callable[[], Tensor]) -> Tensor:
    """Torch warns of layouts that it may change."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


ODD: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "text": lambda: "text",
    "number": lambda: 1.5,
    "nothing": lambda: torch.empty(0, 3),
    "no features": lambda: torch.empty(4, 0),
    "scalar": lambda: torch.tensor(1.0),
    "complex": lambda: torch.randn(4, 3, dtype=torch.complex64),
    "conjugated": lambda: torch.randn(4, 3, dtype=torch.complex64).conj(),
    "negated": lambda: torch.randn(4, 3, dtype=torch.complex64).conj().imag,
    "bool": lambda: torch.ones(4, 3, dtype=torch.bool),
    "uint8": lambda: torch.ones(4, 3, dtype=torch.uint8),
    "uint16": lambda: torch.ones(4, 3, dtype=torch.uint16),
    "half": lambda: torch.ones(4, 3, dtype=torch.float16),
    "float8": lambda: torch.ones(4, 3).to(torch.float8_e4m3fn),
    "quantised": lambda: quietly(lambda: torch.quantize_per_tensor(torch.randn(4, 3), 0.1, 0, torch.qint8)),
    "sparse": lambda: torch.randn(4, 3).to_sparse(),
    "sparse rows": lambda: quietly(lambda: torch.randn(4, 3).to_sparse_csr()),
    "nested": lambda: quietly(lambda: torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(1, 3)])),
    "jagged": lambda: torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(1, 3)], layout=torch.jagged),
    "meta": lambda: torch.empty(4, 3, device="meta"),
    "subclass": lambda: torch.randn(4, 3).as_subclass(Marked),
    "parameter": lambda: nn.Parameter(torch.randn(4, 3)),
    "uninitialised": nn.UninitializedParameter,
    "expanded": lambda: torch.randn(1, 3).expand(4, 3),
    "transposed": lambda: torch.randn(3, 4).t(),
    "freed": lambda: freed(4, 3),
    "freed and large": lambda: freed(4, 30_000),
    "inference": in_inference,
    "not finite": lambda: torch.full((4, 3), float("nan")),
}  # fmt: skip


# Not even their shape can be asked for.
CONTAINED = {"uninitialised": ["BatchWatch._batch_fetched", "ModuleWatch._enter_root"]}


class Odd(nn.Module):
    """A layer that gives something odd beside what the model goes on with."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        self.made = [made]

    def forward(self, x: Tensor, _beside: Any = None) -> tuple[Tensor, Any]:
        return x, self.made[0]


class Net(nn.Module):
    def __init__(self, made: Any) -> None:
        super().__init__()
        self.first, self.odd, self.last = nn.Linear(3, 4), Odd(made), nn.Linear(4, 2)

    def forward(self, x: Tensor, beside: Any = None) -> Tensor:
        hidden, _ = self.odd(self.first(x), beside)
        return self.last(hidden)


class Given(torch.utils.data.IterableDataset[Any]):
    def __init__(self, made: Any) -> None:
        self.made = made

    def __iter__(self) -> Iterator[Any]:
        for _ in range(2):
            yield torch.randn(4, 3), self.made, torch.zeros(4, dtype=torch.long)


def trained(make: Callable[[], Any]) -> None:
    """Two steps in which it is part of the batch, of the model's inputs, of a layer's output, and of what is saved."""
    made = make()
    model = Net(made)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for x, beside, y in torch.utils.data.DataLoader(Given(made), batch_size=None):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x, beside), y).backward()
        optimizer.step()
    with torch.no_grad():
        model(torch.randn(4, 3), {"beside": [made]})


@pytest.mark.parametrize("name", ODD)
def test_odd_tensors_in_batches_inputs_and_outputs(name: str, recorded: Recorded) -> None:
    run = recorded(lambda: trained(ODD[name]))
    assert [failed.watch for failed in run.failed_watches] == CONTAINED.get(name, [])
    assert len(run.steps) == 2
    assert run.stats("output_grad") or CONTAINED.get(name)


def test_storages_can_be_resized_after_they_were_read(recorded: Recorded) -> None:
    """As sharded trainings do with their parameters: `Tensor.numpy` would forbid it for good."""
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2))
    batches = [(torch.randn(4, 3), torch.zeros(4, dtype=torch.long)) for _ in range(3)]
    refused = []

    def train() -> None:
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        outputs = []
        for x, y in torch.utils.data.DataLoader(batches, batch_size=None):  # type: ignore[arg-type]
            outputs.append(model(x))
            nn.functional.cross_entropy(outputs[-1], y).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
        gradients = [parameter.grad for parameter in model.parameters()]
        for tensor in (*model.parameters(), *gradients, *outputs, *(part for batch in batches for part in batch)):
            assert tensor is not None
            storage = tensor.untyped_storage()
            try:
                storage.resize_(storage.size())
            except RuntimeError as problem:
                refused.append((tuple(tensor.shape), str(problem)))

    run = recorded(train)
    assert len(run.steps) == 3
    assert not run.failed_watches
    assert not refused


def with_gradient(parameter: nn.Parameter, gradient: Tensor) -> Callable[[], None]:
    def train() -> None:
        layer = nn.Module()
        layer.weight = parameter
        layer.forward = lambda: None  # type: ignore[method-assign, assignment]
        layer()
        optimizer = torch.optim.SGD([parameter], 0.1)
        parameter.grad = gradient
        optimizer.step()
        optimizer.zero_grad()
        layer()

    return train


PARAMETERS: dict[str, Callable[[], tuple[Tensor, Tensor]]] = {
    "complex": lambda: (torch.randn(4, 3, dtype=torch.complex64), torch.randn(4, 3, dtype=torch.complex64)),
    "nothing": lambda: (torch.empty(0, 3), torch.empty(0, 3)),
    "scalar": lambda: (torch.tensor(1.0), torch.tensor(1.0)),
    "half": lambda: (torch.ones(4, 3, dtype=torch.bfloat16), torch.ones(4, 3, dtype=torch.bfloat16)),
    "sparse gradient": lambda: (torch.randn(4, 3), torch.randn(4, 3).to_sparse()),
    "subclass": lambda: (torch.randn(4, 3).as_subclass(Marked), torch.randn(4, 3)),
    "meta": lambda: (torch.empty(4, 3, device="meta"), torch.empty(4, 3, device="meta")),
    "transposed": lambda: (torch.randn(3, 4).t(), torch.randn(3, 4).t()),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_odd_parameters_and_gradients(name: str, recorded: Recorded) -> None:
    parameter, gradient = PARAMETERS[name]()
    run = recorded(with_gradient(nn.Parameter(parameter), gradient))
    assert run.failed_watches == []
    assert len(run.steps) == 1


def test_the_last_state_of_an_lstm_alone(recorded: Recorded) -> None:
    """The output that nobody uses gets no gradient, and its hook is called all the same."""

    class Classifier(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.head = nn.LSTM(3, 4), nn.Linear(4, 2)

        def forward(self, x: Tensor) -> Tensor:
            _, (h, _) = self.lstm(x)
            return self.head(h[-1])

    def train() -> None:
        model = Classifier()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        for _ in range(3):
            nn.functional.cross_entropy(model(torch.randn(5, 4, 3)), torch.zeros(4, dtype=torch.long)).backward()
            optimizer.step()

    run = recorded(train)
    assert run.failed_watches == []
    lstm = next(module.id for module in run.modules.values() if module.type == "LSTM")
    # Of its three outputs the state is the only one that the loss hangs on.
    assert {stat.position for stat in run.stats("output_grad", lstm)} == {1}
