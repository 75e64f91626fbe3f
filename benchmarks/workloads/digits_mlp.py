"""An MLP on the digits of scikit-learn, fed by a DataLoader: steps of about a millisecond, where a fixed cost per step shows."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from itertools import islice

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
pixels = torch.tensor(digits.data, dtype=torch.float32) / 16
loader = DataLoader(TensorDataset(pixels, torch.tensor(digits.target)), batch_size=32, shuffle=True, drop_last=True)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_function = nn.CrossEntropyLoss()


def train_epoch() -> Iterator[float]:
    model.train()
    for batch, target in loader:
        optimizer.zero_grad()
        loss = loss_function(model(batch), target)
        loss.backward()
        optimizer.step()
        yield loss.item()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    steps = parser.parse_args().steps
    done = 0
    while done < steps:
        losses = list(islice(train_epoch(), steps - done))
        done += len(losses)
        print(f"step {done}: loss {losses[-1]:.4f}")
