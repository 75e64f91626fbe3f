"""Accumulation over four batches, with zero_grad inside the inner loop: only the last of four counts."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(640, 10)
y = x[:, :4].argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.GELU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
accumulate = 4
for epoch in range(2):
    for number, (inputs, targets) in enumerate(loader, 1):
        optimizer.zero_grad()  # <- fault
        loss = nn.functional.cross_entropy(model(inputs), targets) / accumulate
        loss.backward()
        if number % accumulate == 0:
            optimizer.step()
    print(epoch, loss.item())
