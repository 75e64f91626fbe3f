"""Twenty-three batches per epoch in windows of eight: the last seven are cleared at the start of the next epoch."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

WINDOW = 8
torch.manual_seed(0)
x = torch.randn(736, 10)
y = (x @ torch.randn(10, 4)).argmax(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
for epoch in range(10):
    optimizer.zero_grad()  # <- fault
    for i, (inputs, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), labels) / WINDOW
        loss.backward()
        if (i + 1) % WINDOW == 0:
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item() * WINDOW)
