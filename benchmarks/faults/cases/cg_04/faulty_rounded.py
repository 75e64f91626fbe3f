"""The loss is taken of the rounded output."""

import torch
from torch import nn

torch.manual_seed(11)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1), nn.Sigmoid())
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(30):
    x = torch.randn(32, 6)
    y = (x.sum(1, keepdim=True) > 0).float()
    decision = net(x).round()  # <- fault
    loss = nn.functional.mse_loss(decision, y)
    opt.zero_grad()
    loss.backward()
    opt.step()
