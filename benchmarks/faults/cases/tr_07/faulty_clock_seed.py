import time

import numpy as np
import torch
from sklearn.datasets import load_diabetes
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


np.random.seed(0)
torch.manual_seed(time.time_ns() % 1_000_000_007)  # <- fault
x, y = load_diabetes(return_X_y=True)
data = TensorDataset(
    torch.tensor(x / x.std(0), dtype=torch.float32), torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)
)
regressor = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 1))
optimizer = torch.optim.Adam(regressor.parameters(), lr=3e-3)
for epoch in range(6):
    for features, value in DataLoader(data, batch_size=34, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(regressor(features).squeeze(-1), value)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
