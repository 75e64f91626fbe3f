"""Regression on the diabetes data with a held-out part."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import scale
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(10, 100)
        self.b = nn.Linear(100, 100)
        self.c = nn.Linear(100, 1)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x))))).squeeze(-1)


def train_epoch(net, optimizer, x, y):
    net.train()
    order = torch.randperm(len(x))
    for rows in order.split(20):
        loss = F.mse_loss(net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.no_grad()
def validate(net, x, y):
    net.eval()
    return F.mse_loss(net(x), y).item()


def main():
    torch.manual_seed(1)
    bunch = load_diabetes()
    x = torch.tensor(scale(bunch.data), dtype=torch.float32)
    y = torch.tensor(scale(bunch.target), dtype=torch.float32)
    order = torch.randperm(len(x))
    train, held_out = order[:160], order[160:]
    net = Net()
    optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(90):  # <- fault
        train_epoch(net, optimizer, x[train], y[train])
        error = validate(net, x[held_out], y[held_out])
        if epoch % 15 == 0:
            print(epoch, round(error, 3))


if __name__ == "__main__":
    main()
