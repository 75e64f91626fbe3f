"""Training loops as users write them, short enough for a unit test."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - the name that all of torch's users know
from torch.utils.data import DataLoader, TensorDataset


def batches(count: int, size: int = 8, features: int = 4, classes: int = 3) -> Iterator[tuple[Tensor, Tensor]]:
    """Random samples and class labels."""
    generator = torch.Generator().manual_seed(7)
    for _ in range(count):
        yield torch.randn(size, features, generator=generator), torch.randint(0, classes, (size,), generator=generator)


def small_net() -> nn.Sequential:
    return nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))


def train(model: nn.Module, optimizer: torch.optim.Optimizer, steps: int = 2) -> list[float]:
    """The loop that everybody starts with; returns the losses."""
    losses = []
    for x, y in batches(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def labelled(count: int = 12) -> TensorDataset:
    """Samples that are all different, with labels in turn."""
    return TensorDataset(torch.arange(count * 4, dtype=torch.float32).reshape(count, 4), torch.arange(count) % 3)


def loader(count: int = 12, batch_size: int = 4, **settings: object) -> DataLoader[tuple[Tensor, ...]]:
    return DataLoader(labelled(count), batch_size=batch_size, **settings)  # type: ignore[arg-type]
