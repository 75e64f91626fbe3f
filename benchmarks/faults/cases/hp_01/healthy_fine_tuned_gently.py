"""Pretrain on one half of the digits, save, load, and go on gently on the other half."""

import tempfile
from pathlib import Path

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))


def train(model, rows, rate, epochs):
    loader = DataLoader(TensorDataset(x[rows], y[rows]), batch_size=32, shuffle=True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for _ in range(epochs):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(4)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
order = torch.randperm(len(x))
first = build()
print(train(first, order[:900], 1e-3, 15))
with tempfile.TemporaryDirectory() as folder:
    torch.save(first.state_dict(), Path(folder) / "weights.pt")
    second = build()
    second.load_state_dict(torch.load(Path(folder) / "weights.pt"))
print(train(second, order[900:], 1e-6, 6))
