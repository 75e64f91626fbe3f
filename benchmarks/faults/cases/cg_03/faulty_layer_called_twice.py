"""Wine classification with two hidden layers of equal width."""

import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
wine = load_wine()
data = TensorDataset(torch.tensor(scale(wine.data), dtype=torch.float32), torch.tensor(wine.target))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(13, 32)
        self.mid1 = nn.Linear(32, 32)
        self.mid2 = nn.Linear(32, 32)  # <- fault
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        x = torch.relu(self.inp(x))
        x = torch.relu(self.mid1(x))
        x = torch.relu(self.mid1(x))
        return self.out(x)


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
for epoch in range(8):
    for x, y in DataLoader(data, batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(x), y).backward()
        optimizer.step()
