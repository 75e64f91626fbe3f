"""Self-attention written by hand, over the rows of the digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q = nn.Linear(width, width)
        self.k = nn.Linear(width, width)
        self.v = nn.Linear(width, width)
        self.o = nn.Linear(width, width)

    def split(self, x):
        n, t, d = x.shape
        return x.view(n, self.heads, t, d // self.heads)  # <- fault

    def forward(self, x):
        n, t, d = x.shape
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        weights = torch.softmax(q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5, dim=-1)
        return self.o((weights @ v).transpose(1, 2).reshape(n, t, d))


class Model(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.rows = nn.Linear(8, width)
        self.place = nn.Parameter(0.02 * torch.randn(8, width))
        self.attention = Attention(width, 4)
        self.norm = nn.LayerNorm(width)
        self.out = nn.Linear(width, 10)

    def forward(self, x):
        x = self.rows(x) + self.place
        x = self.norm(x + self.attention(x))
        return self.out(x.mean(1))


torch.manual_seed(6)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32) / 16
y = torch.tensor(digits.target)
model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(2):
    for index in torch.randperm(len(x)).split(60):
        loss = nn.functional.cross_entropy(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
