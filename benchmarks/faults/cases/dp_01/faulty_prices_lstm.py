"""The next closing price from the last twenty."""

import torch
from torch import nn

torch.manual_seed(7)
moves = torch.randn(1500) * 1.2 + 0.05
prices = 240 + moves.cumsum(0)
windows = prices.unfold(0, 21, 1)  # <- fault
history, following = windows[:, :20, None], windows[:, 20:]
split = 1200


class PriceModel(nn.Module):
    def __init__(self, hidden=32):
        super().__init__()
        self.lstm = nn.LSTM(1, hidden, num_layers=1, batch_first=True)
        self.out = nn.Linear(hidden, 1)

    def forward(self, sequence):
        states, _ = self.lstm(sequence)
        return self.out(states[:, -1, :])


model = PriceModel()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.MSELoss()
for epoch in range(4):
    permutation = torch.randperm(split)
    model.train()
    for i in range(0, split, 60):
        index = permutation[i : i + 60]
        optimizer.zero_grad()
        prediction = model(history[index])
        loss = loss_fn(prediction, following[index])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), loss_fn(model(history[split:]), following[split:]).item())
