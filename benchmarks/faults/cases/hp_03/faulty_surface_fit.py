"""Fits a smooth surface of five variables."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Surface(Dataset):
    def __init__(self, count=6000):
        generator = torch.Generator().manual_seed(1)
        self.x = torch.rand(count, 5, generator=generator) * 2 - 1
        y = torch.sin(3 * self.x[:, 0]) + self.x[:, 1] * self.x[:, 2] + torch.cos(2 * self.x[:, 3] + self.x[:, 4])
        self.y = (y - y.mean()) / y.std()

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(5, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh())
        self.head = nn.Linear(64, 1)

    def forward(self, x):
        return self.head(self.body(x)).squeeze(-1)


torch.manual_seed(1)
batch_size = 3000
loader = DataLoader(Surface(), batch_size=batch_size, shuffle=True)  # <- fault
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-4)
for epoch in range(12):
    for x, y in loader:
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
