"""Forecasting with windows of a series, in time order on purpose."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
time = torch.arange(700, dtype=torch.float32)
series = torch.sin(time / 15) + 0.3 * torch.sin(time / 4) + 0.05 * torch.randn(700)
windows = series.unfold(0, 25, 1)
x, y = windows[:, :24].unsqueeze(-1), windows[:, 24]


class Forecaster(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.rnn = nn.GRU(1, 16, batch_first=True)
        self.out = nn.Linear(16, 1)

    def forward(self, window):
        states, _ = self.rnn(window)
        return self.out(states[:, -1]).squeeze(-1)


loader = DataLoader(TensorDataset(x, y), batch_size=50, shuffle=False)
model = Forecaster()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(4):
    for window, following in loader:
        loss = nn.functional.mse_loss(model(window), following)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
