"""Half-precision weights with copies in full precision that the optimizer steps, and a loss scale by hand."""

import argparse

import torch
import torch.nn.functional as F
from sklearn.datasets import load_diabetes
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--scale", type=float, default=256.0)
parser.add_argument("--epochs", type=int, default=25)
options = parser.parse_args()

torch.manual_seed(2)
table = load_diabetes(scaled=False)
x = torch.tensor(table.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(table.target, dtype=torch.float32)[:, None]
y = (y - y.mean()) / y.std()
order = torch.randperm(len(x))
rest, held = order[:350], order[350:]

net = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 1)).half()
copies = [weight.detach().float().clone().requires_grad_(True) for weight in net.parameters()]
optimizer = torch.optim.SGD(copies, lr=0.02, momentum=0.9)

for epoch in range(options.epochs):
    total = 0.0
    for rows in rest[torch.randperm(len(rest))].split(35):
        net.zero_grad()
        loss = F.mse_loss(net(x[rows].half()).float(), y[rows])
        (loss * options.scale).backward()
        for copy, weight in zip(copies, net.parameters()):
            copy.grad = weight.grad.float() / options.scale
        nn.utils.clip_grad_norm_(copies, 5.0)
        optimizer.step()
        with torch.no_grad():
            for copy, weight in zip(copies, net.parameters()):
                weight.copy_(copy)
        total += loss.item()
    if epoch % 5 == 4:
        with torch.no_grad():
            print(epoch + 1, f"{total / 10:.3f} {F.mse_loss(net(x[held].half()).float(), y[held]).item():.3f}")
