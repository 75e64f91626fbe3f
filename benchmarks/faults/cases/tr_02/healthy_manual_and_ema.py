"""One part is trained by hand, one by an optimizer, a raw tensor is learned too, and a moving average follows."""

import copy

import torch
from torch import nn

torch.manual_seed(6)
net = nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, 1))
average = copy.deepcopy(net).requires_grad_(False)
bias = nn.Linear(6, 1)
temperature = torch.ones(1, requires_grad=True)
opt = torch.optim.Adam([*net.parameters(), temperature], lr=1e-2)
for step in range(30):
    x = torch.randn(32, 6)
    y = x.sum(1, keepdim=True).sin()
    with torch.no_grad():
        smooth = average(x)
    loss = ((net(x) * temperature + bias(x) - y) ** 2).mean() + 0.01 * ((net(x) - smooth) ** 2).mean()
    opt.zero_grad()
    bias.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for p in bias.parameters():
            p -= 0.05 * p.grad
        for a, p in zip(average.parameters(), net.parameters()):
            a.mul_(0.99).add_(p, alpha=0.01)
