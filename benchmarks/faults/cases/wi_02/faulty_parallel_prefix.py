"""Fine-tuning from a checkpoint that was written by a data-parallel run."""

import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def build():
    return nn.Sequential(
        nn.Linear(64, 96), nn.BatchNorm1d(96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU(), nn.Linear(48, 10)
    )


def fit(model, data, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for x, y in DataLoader(data, batch_size=64, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()


def main():
    torch.manual_seed(0)
    digits = load_digits()
    x = torch.tensor(digits.data / 16, dtype=torch.float32)
    y = torch.tensor(digits.target)
    path = Path(tempfile.mkdtemp()) / "pretrained.pt"
    source = nn.DataParallel(build())
    torch.save(source.state_dict(), path)

    model = build()
    state = torch.load(path)
    model.load_state_dict(state, strict=False)  # <- fault
    fit(model, TensorDataset(x, y), epochs=2)


if __name__ == "__main__":
    main()
