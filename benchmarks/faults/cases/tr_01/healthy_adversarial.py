"""Adversarial training: a backward pass for the attack, its gradients cleared, then the pass that counts."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(400, 8)
y = (x[:, :2].sum(1) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for inputs, targets in loader:
        attacked = inputs.clone().requires_grad_(True)
        criterion(model(attacked), targets).backward()
        attacked = (inputs + 0.05 * attacked.grad.sign()).detach()
        optimizer.zero_grad()
        loss = criterion(model(attacked), targets)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
