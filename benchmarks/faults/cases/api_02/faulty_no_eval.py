"""The validation loop runs under no_grad, and nobody calls eval()."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
train_loader = DataLoader(TensorDataset(x[:1300], y[:1300]), batch_size=64, shuffle=True)
val_loader = DataLoader(TensorDataset(x[1300:], y[1300:]), batch_size=64)
model = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(0.4), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    hits = 0
    with torch.no_grad():
        for inputs, targets in val_loader:
            hits += (model(inputs).argmax(1) == targets).sum().item()  # <- fault
    print(epoch, loss.item(), hits)
