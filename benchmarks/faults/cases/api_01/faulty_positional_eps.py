"""A tabular network with batch normalisation, its settings given by position."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
wine = load_wine()
data = TensorDataset(
    torch.tensor(StandardScaler().fit_transform(wine.data), dtype=torch.float32), torch.tensor(wine.target)
)
model = nn.Sequential(
    nn.Linear(13, 32),
    nn.BatchNorm1d(32, 0.9),  # <- fault
    nn.ReLU(),
    nn.Linear(32, 3),
)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(8):
    for x, y in DataLoader(data, batch_size=32, shuffle=True, drop_last=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
