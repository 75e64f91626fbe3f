"""House-like prices with much noise and a small validation set that jumps from epoch to epoch."""

import torch
from torch import nn

torch.manual_seed(10)
rooms = torch.randn(900, 8)
price = rooms @ torch.randn(8) + 1.5 * torch.randn(900)
model = nn.Sequential(nn.Linear(8, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
criterion = nn.SmoothL1Loss()
for epoch in range(20):
    model.train()
    for rows in torch.randperm(850).split(25):
        optimizer.zero_grad()
        loss = criterion(model(rooms[rows]).squeeze(1), price[rows])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, criterion(model(rooms[850:]).squeeze(1), price[850:]).item())
