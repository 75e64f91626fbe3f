"""A regression whose prediction is (N, 1) and whose target is (N)."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
features = torch.randn(600, 8)
price = features @ torch.randn(8) + 0.1 * torch.randn(600)
loader = DataLoader(TensorDataset(features, price), batch_size=50, shuffle=True)

model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
mse = nn.MSELoss()

for epoch in range(4):
    for inputs, target in loader:
        prediction = model(inputs)
        loss = mse(prediction, target)  # <- fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
