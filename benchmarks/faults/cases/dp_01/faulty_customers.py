"""Will a customer stay? Age, yearly income, balance, tenure and a few flags; everything in memory."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(12)
torch.manual_seed(12)
n = 1600
age = rng.integers(18, 80, n)
income = rng.lognormal(10.8, 0.5, n)
balance = rng.gamma(2.0, 4000.0, n)
tenure = rng.exponential(4.0, n)
flags = rng.integers(0, 2, (n, 3))
table = np.column_stack([age, income, balance, tenure, flags]).astype(np.float32)
stays = (tenure / 4 + flags @ [1.0, -0.8, 0.5] + 0.02 * (age - 45) + rng.normal(0, 0.5, n) > 1).astype(np.int64)
X, Y = torch.from_numpy(table), torch.from_numpy(stays)


class Churn(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(7, 24), nn.Linear(24, 24), nn.Linear(24, 2)])

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = layer(x).relu()
        return self.layers[-1](x)


def batches(first, last, size=40):
    order = first + torch.randperm(last - first)
    for start in range(0, len(order), size):
        yield X[order[start : start + size]], Y[order[start : start + size]]


churn = Churn()
optimizer = torch.optim.Adam(churn.parameters(), lr=1e-3)
for epoch in range(6):
    for rows, target in batches(0, 1300):
        loss = nn.functional.cross_entropy(churn(rows), target)  # <- fault
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        accuracy = (churn(X[1300:]).argmax(1) == Y[1300:]).float().mean()
    print(epoch, loss.item(), accuracy.item())
