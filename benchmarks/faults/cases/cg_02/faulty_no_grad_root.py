"""Encoder and head are called one after the other in the loop, the encoder under no_grad though the optimizer holds it."""

import torch
from torch import nn

torch.manual_seed(4)
encoder = nn.Sequential(nn.Linear(9, 24), nn.ReLU(), nn.Linear(24, 12))
head = nn.Linear(12, 3)
params = list(encoder.parameters()) + list(head.parameters())
opt = torch.optim.AdamW(params, lr=1e-2)
for step in range(30):
    y = torch.randint(0, 3, (32,))
    x = torch.randn(32, 9)
    x[torch.arange(32), y] += 2
    with torch.no_grad():
        z = encoder(x)  # <- fault
    loss = nn.functional.cross_entropy(head(z), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
