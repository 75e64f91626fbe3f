"""Disease progression from ten measurements."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn, optim


class Regressor(nn.Module):
    def __init__(self, features, width):
        super().__init__()
        self.hidden = nn.Linear(features, width)
        self.out = nn.Linear(width, 1)

    def forward(self, x):
        return self.out(torch.tanh(self.hidden(x))).squeeze(1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--lr", type=float, default=2.0)
    args = parser.parse_args()
    torch.manual_seed(0)
    data = load_diabetes()
    x = torch.tensor(StandardScaler().fit_transform(data.data), dtype=torch.float32)
    y = torch.tensor(StandardScaler().fit_transform(data.target[:, None])[:, 0], dtype=torch.float32)
    net = Regressor(10, 64)
    opt = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9)  # <- fault
    for epoch in range(args.epochs):
        order = torch.randperm(len(x))
        losses = []
        for start in range(0, len(x), 32):
            rows = order[start : start + 32]
            opt.zero_grad()
            loss = F.mse_loss(net(x[rows]), y[rows])
            loss.backward()
            opt.step()
            losses.append(loss.item())
        print(epoch, sum(losses) / len(losses))


main()
