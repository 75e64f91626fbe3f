import random

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

for seed in (random.seed, np.random.seed, torch.manual_seed):
    seed(3)
x, y = load_digits(return_X_y=True)
noise = np.random.normal(0, 0.01, x.shape)
data = TensorDataset(torch.tensor(x / 16 + noise, dtype=torch.float32), torch.tensor(y))
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for epoch in range(4):
    model.train()
    for xb, yb in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
