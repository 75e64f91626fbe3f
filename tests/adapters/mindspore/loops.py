"""Training loops as users write them, short enough for a unit test."""

from __future__ import annotations

from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, nn, ops


class SmallNet(nn.Cell):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Dense(4, 6)
        self.second = nn.Dense(6, 3)

    def construct(self, x: Tensor) -> Tensor:
        return self.second(ops.relu(self.first(x)))


def samples(count: int = 32) -> tuple[Any, Any]:
    random = np.random.RandomState(7)
    return random.normal(size=(count, 4)).astype(np.float32), random.randint(0, 3, count).astype(np.int32)


def pipeline(count: int = 32, batch: int = 8, *, shuffle: bool = False) -> Any:
    return ds.NumpySlicesDataset(samples(count), ["x", "label"], shuffle=shuffle).batch(batch)


def train(model: nn.Cell, optimizer: Any, steps: int = 4, *, compiled: bool = False) -> list[float]:
    """The loop that everybody starts with; returns the losses. `compiled`: the whole step under `ms.jit`."""

    def forward(x: Tensor, y: Tensor) -> Any:
        return ops.cross_entropy(model(x), y)

    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)

    def step(x: Tensor, y: Tensor) -> Any:
        loss, gradients = gradients_of(x, y)
        optimizer(gradients)
        return loss

    run_step = ms.jit(step) if compiled else step
    model.set_train()
    return [float(run_step(x, y)) for x, y in pipeline(8 * steps).create_tuple_iterator(num_epochs=1)]
