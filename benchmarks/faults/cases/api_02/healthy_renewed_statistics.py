"""BatchNorm statistics renewed on the training data before each evaluation, in training mode on purpose."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, 0] > 0).long()
train = DataLoader(TensorDataset(x[:300], y[:300]), batch_size=30, shuffle=True)
test = DataLoader(TensorDataset(x[300:], y[300:]), batch_size=50)
model = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    model.train()
    for inputs, targets in train:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()
    with torch.no_grad():
        for inputs, _ in train:
            model(inputs)
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(a).argmax(1) == b).sum().item() for a, b in test))
