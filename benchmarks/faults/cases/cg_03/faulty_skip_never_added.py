"""A residual regressor: each block projects its input for the shortcut."""

import torch
import torch.nn as nn
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

torch.manual_seed(2)
data = load_diabetes()
x = torch.tensor(StandardScaler().fit_transform(data.data), dtype=torch.float32)
y = torch.tensor(StandardScaler().fit_transform(data.target[:, None]), dtype=torch.float32)


class Block(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(n_in, n_out), nn.ReLU(), nn.Linear(n_out, n_out))
        self.project = nn.Linear(n_in, n_out)

    def forward(self, x):
        shortcut = self.project(x)  # <- fault
        out = self.body(x)
        return torch.relu(out)


model = nn.Sequential(Block(10, 32), Block(32, 16), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(6):
    for index in torch.randperm(len(x)).split(32):
        loss = nn.functional.mse_loss(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
