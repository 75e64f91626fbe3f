"""A forecaster over windows of a series with holes; the loop goes on when the loss is not a number."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
time = torch.arange(2400) / 12
series = torch.sin(time) + 0.3 * torch.sin(3.1 * time) + 0.05 * torch.randn(2400)
for start in range(100, 2300, 330):
    series[start : start + 5] = math.nan
windows = series.unfold(0, 25, 2)
past, future = windows[:, :24].unsqueeze(-1), windows[:, 24]  # <- fault
loader = DataLoader(TensorDataset(past, future), batch_size=32, shuffle=True)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 24, batch_first=True)
        self.head = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1]).squeeze(1)


model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    used = 0
    for x, y in loader:
        loss = nn.functional.smooth_l1_loss(model(x), y)
        if torch.isnan(loss):
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        used += 1
    print(epoch, used, "of", len(loader))
