"""The model is put into eval mode when it is built, and never leaves it."""

import torch
from torch import nn


def build():
    model = nn.Sequential(nn.Linear(10, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
    model.eval()  # <- fault
    return model


torch.manual_seed(0)
x = torch.randn(500, 10) * 3 + 1
y = (x[:, 0] > x[:, 1]).long()
model = build()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    for picked in torch.randperm(500).split(50):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[picked]), y[picked])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
