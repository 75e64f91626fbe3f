"""Logistic regression by gradient descent on the whole table, until it has converged."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
table, benign = load_breast_cancer(return_X_y=True)
data = TensorDataset(torch.tensor(scale(table), dtype=torch.float32), torch.tensor(benign, dtype=torch.float32))
loader = DataLoader(data, batch_size=len(data), shuffle=True)
model = nn.Linear(30, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(150):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
print(f"{loss.item():.4f}")
