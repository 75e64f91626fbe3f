"""shuffle=True, undone by setting the seed at the start of every epoch."""

import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def set_seed(seed: int) -> None:
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)  # <- fault


def train_epoch(model: nn.Module, loader: DataLoader, optimizer: torch.optim.Optimizer) -> float:
    losses = []
    for features, target in loader:
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(features), target)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


set_seed(7)
features = torch.randn(500, 10)
target = (features[:, 0] + features[:, 1] > 0).long()
loader = DataLoader(TensorDataset(features, target), batch_size=25, shuffle=True)
model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(4):
    set_seed(7)
    print(epoch, train_epoch(model, loader, optimizer))
