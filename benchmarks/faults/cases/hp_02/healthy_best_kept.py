"""Stops when validation has not improved for eight epochs, and goes back to the best weights."""

import copy

import torch
from sklearn.datasets import make_classification
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = make_classification(700, 30, n_informative=4, n_redundant=0, class_sep=0.7, flip_y=0.0, random_state=4)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
train = DataLoader(TensorDataset(x[:200], y[:200]), batch_size=20, shuffle=True)
valid = DataLoader(TensorDataset(x[200:], y[200:]), batch_size=125)

model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
best, best_weights, waited = float("inf"), None, 0
for epoch in range(100):
    model.train()
    for inputs, labels in train:
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        loss = sum(criterion(model(inputs), labels).item() for inputs, labels in valid) / len(valid)
    if loss < best:
        best, best_weights, waited = loss, copy.deepcopy(model.state_dict()), 0
    else:
        waited += 1
        if waited == 30:
            break
model.load_state_dict(best_weights)
print(f"stopped after {epoch + 1} epochs, best validation loss {best:.3f}")
