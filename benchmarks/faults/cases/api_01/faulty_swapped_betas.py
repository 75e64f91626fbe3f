"""Regression on the diabetes data with Adam's averages given by hand."""

import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from torch import nn

torch.manual_seed(2)
data = load_diabetes()
x = torch.tensor(scale(data.data), dtype=torch.float32)
y = torch.tensor(scale(data.target), dtype=torch.float32)[:, None]
net = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=2e-3, betas=(0.999, 0.9))  # <- fault
for epoch in range(15):
    for index in torch.randperm(len(x)).split(32):
        opt.zero_grad()
        nn.functional.mse_loss(net(x[index]), y[index]).backward()
        opt.step()
