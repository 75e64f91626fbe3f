"""Random features on purpose: the first layer is frozen at random, and a network is trained on top; it logs a detached mean."""

import torch
from torch import nn

torch.manual_seed(8)
features = nn.Linear(5, 128)
for p in features.parameters():
    p.requires_grad_(False)
model = nn.Sequential(features, nn.ReLU(), nn.Linear(128, 16), nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(filter(lambda p: p.requires_grad, model.parameters()), lr=1e-2)
history = []
for step in range(30):
    x = torch.rand(64, 5)
    y = (x * 6).sin().sum(1, keepdim=True)
    out = model(x)
    history.append(out.detach().numpy().mean())
    loss = nn.functional.mse_loss(out, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
