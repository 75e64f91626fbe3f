"""MindSpore in PyNative mode: a small CNN on random 1x28x28 images, batches of 64."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

BATCH = 64
BATCHES = 20


class CNN(nn.Cell):
    """Two convolutions with BatchNorm and pooling, one layer on top."""

    def __init__(self) -> None:
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(16, 32, 3), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2, 2),
        )  # fmt: skip
        self.flatten = nn.Flatten()
        self.head = nn.Dense(32 * 7 * 7, 10)

    def construct(self, images: ms.Tensor) -> ms.Tensor:
        return self.head(self.flatten(self.features(images)))


ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
generator = np.random.default_rng(0)
images = generator.normal(size=(BATCHES * BATCH, 1, 28, 28)).astype(np.float32)
labels = generator.integers(0, 10, BATCHES * BATCH).astype(np.int32)
dataset = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True).batch(BATCH)
model = CNN()
loss_function = nn.CrossEntropyLoss()
optimizer = nn.Momentum(model.trainable_params(), learning_rate=0.01, momentum=0.9)


def forward(batch: ms.Tensor, target: ms.Tensor) -> tuple[Any, Any]:
    logits = model(batch)
    return loss_function(logits, target), logits


gradients_of = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)


def train_epoch() -> Iterator[float]:
    model.set_train()
    for batch, target in dataset.create_tuple_iterator():
        (loss, _), gradients = gradients_of(batch, target)
        optimizer(gradients)
        yield float(loss)


if __name__ == "__main__":
    for epoch in range(3):
        losses = list(train_epoch())
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")
