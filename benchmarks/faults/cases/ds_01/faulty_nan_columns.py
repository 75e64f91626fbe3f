"""A classifier on a table that was read as it is."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(3)
torch.manual_seed(3)
table, labels = load_breast_cancer(return_X_y=True)
table = (table - table.mean(0)) / table.std(0)
table[rng.random(table.shape) < 0.01] = np.nan

x = torch.tensor(table, dtype=torch.float32)  # <- fault
y = torch.tensor(labels, dtype=torch.float32)
train_loader = DataLoader(TensorDataset(x[:450], y[:450]), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(x[450:], y[450:]), batch_size=119)

net = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
for epoch in range(5):
    net.train()
    total = 0.0
    for features, target in train_loader:
        loss = nn.functional.binary_cross_entropy_with_logits(net(features).squeeze(1), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    net.eval()
    with torch.no_grad():
        right = sum(((net(features).squeeze(1) > 0) == (target > 0.5)).sum().item() for features, target in test_loader)
    print(epoch, total / len(train_loader), right / 119)
