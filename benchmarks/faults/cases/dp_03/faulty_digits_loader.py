"""Digits with a DataLoader that nobody told to shuffle."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
data = load_digits()
x = torch.tensor(data.data, dtype=torch.float32) / 16
y = torch.tensor(data.target)
train = TensorDataset(x[:1400], y[:1400])
test = TensorDataset(x[1400:], y[1400:])
train_loader = DataLoader(train, batch_size=64)  # <- fault
test_loader = DataLoader(test, batch_size=128)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(4):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in test_loader)
    print(epoch, loss.item(), right / len(test))
