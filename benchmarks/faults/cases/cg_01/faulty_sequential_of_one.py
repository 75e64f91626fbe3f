"""Regression on the diabetes data with a stack that is put together from a list."""

import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

torch.manual_seed(3)
data = load_diabetes()
features = torch.tensor(StandardScaler().fit_transform(data.data), dtype=torch.float32)
target = torch.tensor(data.target, dtype=torch.float32)
target = ((target - target.mean()) / target.std()).unsqueeze(1)


def make_network(hidden=32, n_hidden=3):
    parts = [nn.Linear(10, hidden), nn.ReLU()]
    parts += [nn.Linear(hidden, hidden), nn.Tanh()] * n_hidden  # <- fault
    parts.append(nn.Linear(hidden, 1))
    return nn.Sequential(*parts)


net = make_network()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
mse = nn.MSELoss()
for epoch in range(8):
    order = torch.randperm(len(features))
    for i in range(0, len(order), 32):
        batch = order[i : i + 32]
        opt.zero_grad()
        mse(net(features[batch]), target[batch]).backward()
        opt.step()
