"""Trains step after step and says so; stops after --steps, raises at --fail-at. For tests that cut a run off."""

import argparse
import sys

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--steps", type=int, default=10**9)
parser.add_argument("--fail-at", type=int, default=-1)
options = parser.parse_args()

torch.manual_seed(0)
x = torch.randn(512, 8)
y = x[:, :4].argmax(dim=1)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)


def train_step(number):
    if number == options.fail_at:
        raise RuntimeError(f"the data of step {number} is broken")
    rows = torch.randint(0, len(x), (32,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    return loss.item()


for number in range(options.steps):
    value = train_step(number)
    sys.stdout.write(f"step {number} {value!r}\n")
    sys.stdout.flush()
print("weights", sum(p.double().sum().item() for p in model.parameters()))
