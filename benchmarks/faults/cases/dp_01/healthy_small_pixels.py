"""Digits with their sixteen grey levels, as scikit-learn gives them."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
digits = load_digits()
data = TensorDataset(torch.tensor(digits.data, dtype=torch.float32), torch.tensor(digits.target))
train, test = random_split(data, [1400, 397])
train_loader, test_loader = DataLoader(train, batch_size=64, shuffle=True), DataLoader(test, batch_size=397)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for x, y in test_loader:
            print(epoch, loss.item(), (model(x).argmax(1) == y).float().mean().item())
