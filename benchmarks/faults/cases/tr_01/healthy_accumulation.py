"""Gradient accumulation on purpose, cleared after each step."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 10)
y = x[:, :4].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
optimizer.zero_grad()
for epoch in range(3):
    for number, (inputs, targets) in enumerate(loader, 1):
        loss = nn.functional.cross_entropy(model(inputs), targets) / 4
        loss.backward()
        if number % 4 == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
