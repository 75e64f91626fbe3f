"""Cosine annealing over the number of epochs, stepped after every batch: the rate swings up and down within an epoch."""

import torch
from torch import nn

EPOCHS = 12
torch.manual_seed(4)
features = torch.randn(960, 8)
target = torch.sin(features[:, :1]) + 0.5 * features[:, 1:2] * features[:, 2:3]
net = nn.Sequential(nn.Linear(8, 48), nn.Tanh(), nn.Linear(48, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.8)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=EPOCHS)
for epoch in range(EPOCHS):
    order = torch.randperm(960)
    for start in range(0, 960, 32):
        rows = order[start : start + 32]
        loss = nn.functional.mse_loss(net(features[rows]), target[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()  # <- fault
    print(epoch, loss.item(), opt.param_groups[0]["lr"])
