"""Which of three waves is it? A recurrent classifier over windows of 25 values."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(4)
n, length = 900, 25
kind = torch.randint(0, 3, (n,))
t = torch.linspace(0, 4 * math.pi, length)
phase = torch.rand(n, 1) * 2 * math.pi
waves = torch.stack([torch.sin(t + phase), torch.sign(torch.sin(t + phase)), torch.sin(2 * t + phase)], 1)
signals = waves[torch.arange(n), kind].unsqueeze(-1) + 0.1 * torch.randn(n, length, 1)


class WaveNet(nn.Module):
    def __init__(self, hidden=24):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden)  # <- fault
        self.classify = nn.Linear(hidden, 3)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.classify(states[:, -1])


model = WaveNet()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    for inputs, labels in DataLoader(TensorDataset(signals, kind), batch_size=60, shuffle=True):
        loss = criterion(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
