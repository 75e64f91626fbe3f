"""Training accuracy on a fixed part of the training data, and validation accuracy on rows that were kept apart."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset, random_split

torch.manual_seed(1)
features, labels = load_digits(return_X_y=True)
dataset = TensorDataset(torch.tensor(features, dtype=torch.float32) / 16, torch.tensor(labels))
train_set, val_set = random_split(dataset, [1400, 397])
train_loader = DataLoader(train_set, batch_size=40, shuffle=True)
monitor = DataLoader(Subset(train_set, range(400)), batch_size=200)
val_loader = DataLoader(val_set, batch_size=200)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)


@torch.no_grad()
def accuracy(loader):
    model.eval()
    hits = total = 0
    for x, y in loader:
        hits += (model(x).argmax(1) == y).sum().item()
        total += len(y)
    model.train()
    return hits / total


for epoch in range(5):
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, f"{accuracy(monitor):.3f} {accuracy(val_loader):.3f}")
