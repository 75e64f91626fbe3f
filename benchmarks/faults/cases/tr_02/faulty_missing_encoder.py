"""Encoder and decoder are separate modules, and only the decoder's parameters are given to the optimizer."""

import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Linear(16, 4))
decoder = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 20))
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-3)  # <- fault
data = torch.randn(500, 4) @ torch.randn(4, 20)
for step in range(30):
    x = data[torch.randint(0, 500, (64,))]
    loss = nn.functional.mse_loss(decoder(encoder(x)), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
