"""Regression on independent rows, read in file order in every epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 6)
y = (x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 3.0, 1.5]) + 0.1 * torch.randn(600)).unsqueeze(1)
loader = DataLoader(TensorDataset(x, y), batch_size=40)  # <- fault
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(4):
    for xb, yb in loader:
        loss = nn.functional.mse_loss(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
