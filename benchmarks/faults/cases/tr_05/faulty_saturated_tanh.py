"""Digits with tanh units and a normal initialisation."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 100)
        self.act1 = nn.Tanh()
        self.second = nn.Linear(100, 100)
        self.act2 = nn.Tanh()  # <- fault
        self.third = nn.Linear(100, 10)
        nn.init.normal_(self.first.weight, std=0.5)
        nn.init.normal_(self.second.weight, std=6.0)

    def forward(self, x):
        return self.third(self.act2(self.second(self.act1(self.first(x)))))


torch.manual_seed(2)
pixels, digit = load_digits(return_X_y=True)
pixels = torch.tensor(pixels, dtype=torch.float32)
pixels = (pixels - pixels.mean()) / pixels.std()
order = torch.randperm(len(pixels))
loader = DataLoader(TensorDataset(pixels[order], torch.tensor(digit)[order]), batch_size=32, shuffle=True)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.001)
for epoch in range(5):
    total = 0.0
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
