"""Digits until nothing changes any more: validation stays at its best."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
x, y = load_digits(return_X_y=True)
x, y = torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)
order = torch.randperm(len(x))
train = DataLoader(TensorDataset(x[order[:1400]], y[order[:1400]]), batch_size=50, shuffle=True)
valid = DataLoader(TensorDataset(x[order[1400:]], y[order[1400:]]), batch_size=200)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(25):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [criterion(model(inputs), labels).item() for inputs, labels in valid]
    print(epoch, round(loss.item(), 3), round(sum(losses) / len(losses), 3))
