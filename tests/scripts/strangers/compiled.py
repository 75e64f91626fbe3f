"""torch.compile on a small regression net."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.rand(256, 6)
y = (x**2).sum(1, keepdim=True)

net = nn.Sequential(nn.Linear(6, 32), nn.SiLU(), nn.Linear(32, 1))
model = torch.compile(net, backend="aot_eager")
opt = torch.optim.Adam(net.parameters(), lr=1e-2)

for epoch in range(10):
    for rows in torch.randperm(256).view(-1, 32):
        loss = nn.functional.mse_loss(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if epoch % 3 == 0:
        print(epoch, round(loss.item(), 5))
