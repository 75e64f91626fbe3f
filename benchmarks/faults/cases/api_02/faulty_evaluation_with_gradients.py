"""A shared run_epoch function: evaluation neither switches the mode nor the gradients."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def run_epoch(model, loader, criterion, optimizer=None):
    total = 0.0
    for x, y in loader:
        out = model(x)  # <- fault
        loss = criterion(out, y)
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item() * len(x)
    return total / len(loader.dataset)


torch.manual_seed(0)
x = torch.randn(600, 3, 6, 6)
y = x.mean((1, 2, 3)).unsqueeze(1) * 10
model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(128, 1))
train = DataLoader(TensorDataset(x[:450], y[:450]), batch_size=45, shuffle=True)
valid = DataLoader(TensorDataset(x[450:], y[450:]), batch_size=50)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.MSELoss()
for epoch in range(3):
    print(epoch, run_epoch(model, train, criterion, optimizer), run_epoch(model, valid, criterion))
