"""Digits with a small mixer over image rows: the PyTorch original of mixer_mindspore.py."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width, rows):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.across_rows = nn.Linear(rows, rows)
        self.norm2 = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.act = nn.GELU()
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.across_rows(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.narrow(self.act(self.widen(self.norm2(x))))


class Mixer(nn.Module):
    def __init__(self, rows=8, width=32, depth=2, classes=10):
        super().__init__()
        self.embed = nn.Linear(8, width)
        self.blocks = nn.Sequential(*(Block(width, rows) for _ in range(depth)))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        return self.head(self.norm(self.blocks(self.embed(images))).mean(dim=1))


torch.manual_seed(0)
images, labels = load_digits(return_X_y=True)
images = torch.tensor(images, dtype=torch.float32).view(-1, 8, 8) / 8 - 0.6
loader = DataLoader(TensorDataset(images, torch.tensor(labels)), batch_size=64, shuffle=True)

model = Mixer()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

model.train()
for step, (x, y) in enumerate(loader, 1):
    loss = criterion(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 7 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
