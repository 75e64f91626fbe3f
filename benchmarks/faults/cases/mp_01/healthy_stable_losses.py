"""Logarithms, roots and quotients with the usual guards: an epsilon, log-sum-exp, clamping."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
x = (x - x.mean(0)) / (x.std(0) + 1e-6)
y = torch.tensor(wine.target)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
net = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(20):
    for inputs, labels in loader:
        logits = net(inputs)
        p = torch.softmax(logits, dim=1)
        entropy = -(p * torch.log(p.clamp_min(1e-8))).sum(1).mean()
        spread = torch.sqrt(logits.var(dim=1) + 1e-8).mean()
        loss = F.cross_entropy(logits, labels) - 0.01 * entropy + 0.001 * spread
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
