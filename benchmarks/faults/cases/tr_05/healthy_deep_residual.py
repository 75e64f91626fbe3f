"""Twelve residual blocks with tanh: deep, and its gradients arrive."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.linear = nn.Linear(width, width)

    def forward(self, x):
        return x + torch.tanh(self.linear(self.norm(x)))


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Linear(13, 32)
        self.blocks = nn.ModuleList(Block(32) for _ in range(12))
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(7)
features, cultivar = load_wine(return_X_y=True)
x, y = torch.tensor(scale(features), dtype=torch.float32), torch.tensor(cultivar)
model = Deep()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for epoch in range(12):
    for rows in torch.randperm(len(x)).split(16):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
