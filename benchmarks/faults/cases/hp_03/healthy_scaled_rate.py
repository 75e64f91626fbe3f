"""Large batches with a rate that was raised along with them."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(3)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
loader = DataLoader(data, batch_size=512, shuffle=True)
model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(25):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(epoch, round(loss.item(), 4))
