"""The usual switch: without mixed precision the scaler is disabled, and the clipping needs no unscaling."""

import torch
from torch import nn

use_amp = False
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", enabled=use_amp)
x = torch.randn(200, 6)
y = (x[:, 0] * x[:, 1] > 0).long()
for epoch in range(5):
    for picked in torch.randperm(200).split(20):
        loss = nn.functional.cross_entropy(model(x[picked]), y[picked])
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
print(loss.item())
