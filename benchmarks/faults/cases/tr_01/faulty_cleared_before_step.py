"""zero_grad between backward and step: the optimizer never has anything to apply."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(5, 20)
        self.out = nn.Linear(20, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x)))


def train_step(net, opt, x, y):
    loss = F.mse_loss(net(x), y)
    loss.backward()
    opt.zero_grad()  # <- fault
    opt.step()
    return loss.item()


torch.manual_seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.01)
x = torch.randn(256, 5)
y = x.sum(1, keepdim=True).sin()
for epoch in range(5):
    for picked in torch.randperm(256).split(32):
        last = train_step(net, opt, x[picked], y[picked])
    print(epoch, last)
