"""A linear classifier whose optimizer steps before the backward pass of its batch: the gradients are those of the batch before."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 20)
y = (x[:, 0] + x[:, 1] - x[:, 2] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Linear(20, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(5):
    for features, labels in loader:
        loss = nn.functional.cross_entropy(model(features), labels)
        optimizer.step()  # <- fault
        optimizer.zero_grad()
        loss.backward()
    print(epoch, loss.item())
