"""A regression whose noise leaves little to learn: the loss is flat after the first steps."""

import torch
from torch import nn

torch.manual_seed(12)
x = torch.randn(800, 6)
y = 0.4 * x[:, 0] - 0.2 * x[:, 1] + torch.randn(800)
model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    order = torch.randperm(800)
    for start in range(0, 800, 32):
        rows = order[start : start + 32]
        loss = ((model(x[rows]).squeeze(1) - y[rows]) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 3))
