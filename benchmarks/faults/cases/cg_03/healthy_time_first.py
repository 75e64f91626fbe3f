"""A recurrent network that wants time first, fed by a loader that gives samples first; attention with heads split by hand."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
x = torch.randn(800, 14, 6)
y = (x[:, :7].sum((1, 2)) > x[:, 7:].sum((1, 2))).long()


class Heads(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.h = h
        self.qkv = nn.Linear(d, 3 * d)
        self.out = nn.Linear(d, d)

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = (part.view(n, t, self.h, d // self.h).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1))
        mixed = torch.softmax(q @ k.transpose(-1, -2) / (d // self.h) ** 0.5, -1) @ v
        return self.out(mixed.transpose(1, 2).reshape(n, t, d))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(6, 32)
        self.heads = Heads(32, 4)
        self.final = nn.Linear(32, 2)

    def forward(self, x):
        states, last = self.gru(x.transpose(0, 1))
        states = states.transpose(0, 1)
        return self.final((states + self.heads(states)).mean(1))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(12):
    for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=50, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
