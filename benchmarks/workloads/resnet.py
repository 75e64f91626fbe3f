"""A small ResNet on random 3x32x32 images, batches of 32."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import nn
from torch.nn import functional

BATCH = 32
BATCHES = 10


class Block(nn.Module):
    """Two 3x3 convolutions and a shortcut."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or inputs != outputs:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        out = functional.relu(self.bn1(self.conv1(images)))
        out = self.bn2(self.conv2(out))
        return functional.relu(out + self.shortcut(images))


class ResNet(nn.Module):
    """Three stages of two blocks: 14 layers with weights, as for CIFAR."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU())
        self.stages = nn.Sequential(
            Block(16, 16, 1), Block(16, 16, 1), Block(16, 32, 2), Block(32, 32, 1), Block(32, 64, 2), Block(64, 64, 1)
        )
        self.head = nn.Linear(64, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.stages(self.stem(images)).mean(dim=(2, 3))
        return self.head(features)


torch.manual_seed(0)
images = torch.randn(BATCHES, BATCH, 3, 32, 32)
labels = torch.randint(0, 10, (BATCHES, BATCH))
model = ResNet()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=5e-4)


def train_epoch() -> Iterator[float]:
    model.train()
    for batch, target in zip(images, labels, strict=True):
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(batch), target)
        loss.backward()
        optimizer.step()
        yield loss.item()


if __name__ == "__main__":
    for epoch in range(3):
        losses = list(train_epoch())
        print(f"epoch {epoch}: loss {sum(losses) / len(losses):.4f}")
