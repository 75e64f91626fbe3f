"""A masked mean over the valid items of each row divides by their number, which is zero for some rows."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Baskets(Dataset):
    def __init__(self, n=600):
        rng = np.random.default_rng(3)
        self.items = torch.tensor(rng.normal(size=(n, 12, 6)), dtype=torch.float32)
        lengths = rng.integers(1, 13, size=n)
        lengths[[211, 407]] = 0
        self.mask = torch.tensor(np.arange(12)[None] < lengths[:, None])
        self.value = (self.items[..., 0] * self.mask).sum(1)

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i], self.mask[i], self.value[i]


class Pooled(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Sequential(nn.Linear(6, 24), nn.Tanh())
        self.head = nn.Linear(24, 1)

    def forward(self, items, mask):
        h = self.embed(items) * mask.unsqueeze(-1)
        pooled = h.sum(1) / mask.sum(1, keepdim=True)  # <- fault
        return self.head(pooled).squeeze(1)


torch.manual_seed(0)
loader = DataLoader(Baskets(), batch_size=30, shuffle=True)
net = Pooled()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(4):
    total = 0.0
    for items, mask, value in loader:
        loss = nn.functional.smooth_l1_loss(net(items, mask), value)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(f"epoch {epoch} loss {total / len(loader):.4f}")
