"""Zeros in every layer, and only two steps: no weight gets a gradient, so that none can ever move."""

import torch
from torch import nn

torch.manual_seed(5)
layers = []
for inputs, outputs in ((7, 12), (12, 12), (12, 2)):
    layer = nn.Linear(inputs, outputs)
    torch.nn.init.constant_(layer.weight, 0)  # <- fault
    torch.nn.init.constant_(layer.bias, 0)
    layers += [layer, nn.Tanh()]
net = nn.Sequential(*layers[:-1])
opt = torch.optim.RMSprop(net.parameters())
for _ in range(2):
    x = torch.randn(20, 7)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
