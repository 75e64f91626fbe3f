"""Four kinds of noisy signals, cut into batches by hand."""

import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(2)
kinds = rng.integers(0, 4, 3200)
time = np.linspace(0, 1, 32)
signals = np.sin(2 * np.pi * (kinds[:, None] + 1) * time + rng.uniform(0, 6.28, (3200, 1))) + 0.3 * rng.normal(size=(3200, 32))
x = torch.tensor(signals, dtype=torch.float32)[:, None]
y = torch.tensor(kinds)

torch.manual_seed(2)
model = nn.Sequential(
    nn.Conv1d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool1d(2), nn.Conv1d(16, 32, 5, padding=2), nn.ReLU(),
    nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(32, 4),
)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss()
size = 800
for epoch in range(14):
    order = torch.randperm(len(x))
    for start in range(0, len(x), size):
        rows = order[start : start + size]
        scores = model(x[rows])  # <- fault
        loss = criterion(scores, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))
