"""No DataLoader: slices of the arrays, in the same order in every epoch."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(0)
labels = rng.integers(0, 4, size=480)
points = rng.normal(size=(480, 12)).astype("float32")
points[np.arange(480), labels] += 2.5
torch.manual_seed(0)

net = nn.Sequential(nn.Linear(12, 32), nn.Tanh(), nn.Linear(32, 4))
opt = torch.optim.SGD(net.parameters(), lr=0.1)
batch_size = 32
for epoch in range(5):
    total = 0.0
    for start in range(0, len(points), batch_size):
        xb = torch.from_numpy(points[start : start + batch_size])
        yb = torch.from_numpy(labels[start : start + batch_size])
        logits = net(xb)  # <- fault
        loss = nn.functional.cross_entropy(logits, yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
        total += loss.item()
    print(epoch, total)
