"""An ensemble of small classifiers for the wine data, averaged."""

import copy

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(11)
raw = load_wine()
dataset = TensorDataset(torch.tensor(scale(raw.data), dtype=torch.float32), torch.tensor(raw.target))


class Ensemble(nn.Module):
    def __init__(self, members=5):
        super().__init__()
        member = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
        self.members = nn.ModuleList([copy.deepcopy(member) for _ in range(members)])  # <- fault

    def forward(self, x):
        return torch.stack([member(x) for member in self.members]).mean(0)


ensemble = Ensemble()
optimizer = torch.optim.Adam(ensemble.parameters(), lr=5e-3)
for epoch in range(10):
    for x, y in DataLoader(dataset, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(ensemble(x), y).backward()
        optimizer.step()
