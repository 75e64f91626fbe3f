"""A margin loss that is zero for most samples once they are told apart."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
x, y = load_breast_cancer(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(scale(x), dtype=torch.float32), torch.tensor(y)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(30, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.MultiMarginLoss(margin=0.5)
for epoch in range(15):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
