"""Regression on a table; both parts are scaled in one loop."""

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler
from torch import nn

torch.manual_seed(14)
x, y = load_diabetes(return_X_y=True, scaled=False)
order = np.random.default_rng(14).permutation(len(y))
parts = {"train": order[:330], "test": order[330:]}
scaled = {name: torch.tensor(StandardScaler().fit_transform(x[rows]), dtype=torch.float32) for name, rows in parts.items()}  # <- fault
target = {name: torch.tensor((y[rows] - 150) / 75, dtype=torch.float32) for name, rows in parts.items()}

model = nn.Sequential(nn.Linear(10, 24), nn.Tanh(), nn.Linear(24, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(10):
    for rows in torch.randperm(330).split(33):
        loss = nn.functional.mse_loss(model(scaled["train"][rows]).squeeze(1), target["train"][rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        error = nn.functional.mse_loss(model(scaled["test"]).squeeze(1), target["test"])
    print(epoch, loss.item(), error.item())
