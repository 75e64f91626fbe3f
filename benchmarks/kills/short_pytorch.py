"""Trains for a few steps, and writes down each one that is complete."""

import torch
from torch import nn

STEPS = 40
torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :4].argmax(dim=1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
with open("steps.txt", "ab", buffering=0) as complete:
    for step in range(STEPS):
        rows = torch.randint(0, len(x), (16,))
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[rows]), y[rows]).backward()
        optimizer.step()
        complete.write(b"step\n")
