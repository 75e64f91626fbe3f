"""The same loss is propagated back twice before the step."""

import torch
from torch import nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 20, batch_first=True)
        self.head = nn.Linear(20, 1)

    def forward(self, series):
        states, _ = self.rnn(series)
        return self.head(states[:, -1]).squeeze(1)


torch.manual_seed(0)
series = torch.randn(400, 12, 3).cumsum(1) / 3
value = series[:, -3:, 0].mean(1)
model = Regressor()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    for rows in torch.randperm(400).split(25):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(series[rows]), value[rows])
        loss.backward(retain_graph=True)
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        loss.backward()  # <- fault
        optimizer.step()
    print(epoch, loss.item())
