"""Synthetic two-moons data."""

from __future__ import annotations

import torch
from sklearn.datasets import make_moons
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_loaders(n_samples: int, batch_size: int, seed: int) -> tuple[DataLoader, DataLoader]:
    points, labels = make_moons(n_samples, noise=0.15, random_state=seed)
    dataset = TensorDataset(torch.from_numpy(points).float(), torch.from_numpy(labels).long())
    generator = torch.Generator().manual_seed(seed)
    train, valid = random_split(dataset, [0.8, 0.2], generator=generator)
    return DataLoader(train, batch_size=batch_size, shuffle=True), DataLoader(valid, batch_size=256)
