"""The loss is rebuilt from its number, so that backward reaches nothing."""

import torch
from torch import nn

torch.manual_seed(9)
model = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 2))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 0.0
for step in range(30):
    x = torch.randn(20, 5)
    y = (x[:, 0] > 0).long()
    value = criterion(model(x), y)
    total += value.item()
    loss = torch.tensor(value.item(), requires_grad=True)  # <- fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
