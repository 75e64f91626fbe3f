"""A tanh network whose weights all start at 0.1: every layer is one unit, many times."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(8, 20)
        self.b = nn.Linear(20, 20)
        self.out = nn.Linear(20, 3)
        for p in self.parameters():
            p.data.fill_(0.1)  # <- fault

    def forward(self, x):
        return self.out(torch.tanh(self.b(torch.tanh(self.a(x)))))


if __name__ == "__main__":
    torch.manual_seed(1)
    y = torch.randint(0, 3, (400,))
    x = torch.randn(400, 8)
    x[torch.arange(400), y] += 2
    net = Net()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
    for epoch in range(3):
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True):
            optimizer.zero_grad()
            criterion(net(inputs), labels).backward()
            optimizer.step()
