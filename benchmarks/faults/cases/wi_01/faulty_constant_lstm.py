"""A recurrent classifier of rising and falling sequences, all of whose parameters start at one value."""

import torch
from torch import nn

torch.manual_seed(8)
x = torch.cumsum(torch.randn(512, 12, 3), 1)
y = (x[:, -1].sum(1) > x[:, 0].sum(1)).long()


class Trend(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(3, 16, batch_first=True)
        self.out = nn.Linear(16, 2)

    def forward(self, x):
        return self.out(self.rnn(x)[0][:, -1])


model = Trend()
for p in model.parameters():
    nn.init.constant_(p, 0.05)  # <- fault
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(5):
    for index in torch.randperm(len(x)).split(64):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x[index]), y[index]).backward()
        optimizer.step()
