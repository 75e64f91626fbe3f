"""A hand-written squared error of an (N, 1) prediction and an (N) target, in a class-style trainer."""

import torch
from torch import nn


class Trainer:
    def __init__(self, net, rate):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), lr=rate)

    def loss(self, prediction, target):
        error = prediction - target  # <- fault
        return (error**2).mean()

    def fit(self, x, y, steps):
        for _ in range(steps):
            pick = torch.randperm(len(x))[:32]
            loss = self.loss(self.net(x[pick]), y[pick])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


torch.manual_seed(4)
x = torch.rand(300, 4)
y = x.sum(1)
Trainer(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1)), 0.05).fit(x, y, 40)
