"""Clipping of scaled gradients on purpose, with a limit that is scaled in the same way."""

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu")
x = torch.randn(200, 6)
y = (x[:, 0] + x[:, 1] > 0).long()
for epoch in range(5):
    for picked in torch.randperm(200).split(20):
        loss = nn.functional.cross_entropy(model(x[picked]), y[picked])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0 * scaler.get_scale())
        scaler.step(optimizer)
        scaler.update()
print(loss.item())
