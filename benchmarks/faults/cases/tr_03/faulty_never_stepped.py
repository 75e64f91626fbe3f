"""The optimizer is built and cleared in every iteration, and never takes a step."""

import torch
from sklearn.datasets import load_wine
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
wine = load_wine()
x = torch.tensor(wine.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
loader = DataLoader(TensorDataset(x, torch.tensor(wine.target)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(12):
    running = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()  # <- fault
        running += loss.item()
    print(f"epoch {epoch}: {running / len(loader):.4f}")
