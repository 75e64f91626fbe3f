"""Tensors that no textbook has, wherever a watch may meet them: recorded or passed over, and nothing fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mindspore as ms
import numpy as np
import pytest
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import initializer

from trueline.store import Run

Recorded = Callable[..., Run]


class Marked(Tensor):
    """A subclass as libraries have them."""


def random(*shape: int) -> Any:
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


ODD: dict[str, Callable[[], Any]] = {
    "none": lambda: None,
    "text": lambda: "text",
    "number": lambda: 1.5,
    "nothing": lambda: Tensor(random(0, 3)),
    "scalar": lambda: Tensor(1.0),
    "complex": lambda: Tensor(random(4, 3).astype(np.complex64)),
    "bool": lambda: Tensor(np.ones((4, 3), np.bool_)),
    "uint8": lambda: Tensor(np.ones((4, 3), np.uint8)),
    "uint16": lambda: Tensor(np.ones((4, 3), np.uint16)),
    "half": lambda: Tensor(random(4, 3), ms.float16),
    "bfloat16": lambda: Tensor(random(4, 3), ms.bfloat16),
    "sparse": lambda: ms.COOTensor(Tensor([[0, 1], [1, 2]]), Tensor([1.0, 2.0]), (4, 3)),
    "sparse rows": lambda: ms.CSRTensor(Tensor([0, 1, 2]), Tensor([0, 1]), Tensor([1.0, 2.0]), (2, 4)),
    "row": lambda: ms.RowTensor(Tensor([0]), Tensor(random(1, 3)), (4, 3)),
    "subclass": lambda: Marked(random(4, 3)),
    "parameter": lambda: ms.Parameter(Tensor(random(4, 3)), "odd"),
    "uninitialised": lambda: initializer("ones", (4, 3), ms.float32),
    "words": lambda: Tensor(np.array(["some", "words"])),
    "array": lambda: random(4, 3),
    "not finite": lambda: Tensor(np.full((4, 3), np.nan, np.float32)),
}


class Odd(nn.Cell):
    """A layer that gives something odd beside what the model goes on with."""

    def __init__(self, made: Any) -> None:
        super().__init__()
        self.made = [made]

    def construct(self, x: Tensor, _beside: Any = None) -> tuple[Tensor, Any]:
        return x, self.made[0]


class Net(nn.Cell):
    def __init__(self, made: Any) -> None:
        super().__init__()
        self.first, self.odd, self.last = nn.Dense(3, 4), Odd(made), nn.Dense(4, 2)

    def construct(self, x: Tensor, beside: Any = None) -> Tensor:
        hidden, _ = self.odd(self.first(x), beside)
        return self.last(hidden)


def trained(make: Callable[[], Any]) -> None:
    """Two steps in which it is part of the model's inputs and of a layer's output."""
    made = make()
    model = Net(made)
    optimizer = nn.SGD(model.trainable_params(), 0.1)

    def forward(x: Tensor, y: Tensor) -> Tensor:
        return ops.cross_entropy(model(x, made), y)

    grad_of = ms.value_and_grad(forward, None, optimizer.parameters)
    for _ in range(2):
        _, gradients = grad_of(Tensor(random(4, 3)), Tensor(np.zeros(4, np.int32)))
        optimizer(gradients)
    model(Tensor(random(4, 3)), made)


@pytest.mark.parametrize("name", ODD)
def test_odd_tensors_in_inputs_and_outputs(name: str, recorded: Recorded) -> None:
    run = recorded(lambda: trained(ODD[name]))
    assert run.failed_watches == []
    assert len(run.steps) == 2
    assert run.stats("output_grad")
