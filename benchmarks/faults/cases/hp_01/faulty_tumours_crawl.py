"""Benign or malignant, with a configuration and a trainer class."""

from dataclasses import dataclass

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, Dataset


@dataclass
class Config:
    epochs: int = 25
    batch_size: int = 16
    learning_rate: float = 1e-7
    weight_decay: float = 0.01


class Tumours(Dataset):
    def __init__(self, rows):
        bunch = load_breast_cancer()
        values = (bunch.data - bunch.data.mean(0)) / bunch.data.std(0)
        self.x = values[rows].astype(np.float32)
        self.y = bunch.target[rows].astype(np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Trainer:
    def __init__(self, model, config):
        self.model, self.config = model, config
        self.loss = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.AdamW(  # <- fault
            model.parameters(),
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
        )

    def fit(self, loader):
        for epoch in range(self.config.epochs):
            mean = np.mean([self.update(x, y) for x, y in loader])
            print(f"{epoch}: {mean:.4f}")

    def update(self, x, y):
        self.optimizer.zero_grad()
        loss = self.loss(self.model(x).squeeze(-1), y)
        loss.backward()
        self.optimizer.step()
        return loss.item()


torch.manual_seed(3)
rows = np.random.default_rng(3).permutation(569)
config = Config()
model = nn.Sequential(nn.Linear(30, 32), nn.GELU(), nn.Linear(32, 16), nn.GELU(), nn.Linear(16, 1))
Trainer(model, config).fit(DataLoader(Tumours(rows[:450]), batch_size=config.batch_size, shuffle=True))
