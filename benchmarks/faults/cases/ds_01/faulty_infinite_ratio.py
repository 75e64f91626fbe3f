"""Click rates as a feature: clicks divided by views, and some pages were never viewed."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(8)
torch.manual_seed(8)
views = rng.poisson(6.0, size=(2000, 5)).astype(np.float32)
clicks = rng.binomial(views.astype(int) + 1, 0.3).astype(np.float32)
with np.errstate(divide="ignore", invalid="ignore"):
    rates = clicks / views
liked = (rng.random(2000) < 1 / (1 + np.exp(-(clicks.sum(1) - 10)))).astype(np.int64)
dataset = TensorDataset(torch.from_numpy(np.concatenate([rates, views / 10], axis=1)), torch.from_numpy(liked))  # <- fault
train, held_out = torch.utils.data.random_split(dataset, [1600, 400])
batches = DataLoader(train, batch_size=64, shuffle=True, drop_last=True)

model = nn.Sequential(nn.Linear(10, 24), nn.LeakyReLU(), nn.Linear(24, 2))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
for epoch in range(3):
    for features, target in batches:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), target)
        loss.backward()
        optimizer.step()
    print("epoch", epoch, "loss", float(loss))
