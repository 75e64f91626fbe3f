"""A leftover of an experiment freezes the middle layer of a network that is trained from scratch."""

import torch
from torch import nn

torch.manual_seed(9)
net = nn.Sequential(
    nn.Linear(4, 32),
    nn.ReLU(),
    nn.Linear(32, 32),  # <- fault
    nn.ReLU(),
    nn.Linear(32, 1),
)
net[2].weight.requires_grad = False
net[2].bias.requires_grad = False
opt = torch.optim.Adam(net.parameters(), lr=0.01)
for i in range(20):
    x = torch.randn(32, 4)
    y = x.sum(1, keepdim=True)
    loss = ((net(x) - y) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
