"""Batches drawn at random with replacement from an array, and a weighted sampler beside it."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
y = torch.arange(5).repeat_interleave(100)
x = torch.randn(5, 10)[y] + 0.7 * torch.randn(500, 10)
first = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 5))
optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
for step in range(80):
    picked = torch.randint(len(x), (32,))
    loss = nn.functional.cross_entropy(first(x[picked]), y[picked])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

sampler = WeightedRandomSampler(torch.ones(500), 500)
for inputs, targets in DataLoader(TensorDataset(x, y), batch_size=50, sampler=sampler):
    loss = nn.functional.cross_entropy(first(inputs), targets)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
