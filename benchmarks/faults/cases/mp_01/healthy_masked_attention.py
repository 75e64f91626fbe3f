"""Attention scores masked with minus infinity before the softmax: infinite values that belong there."""

import math

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.scores = nn.Identity()

    def forward(self, x):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        scores = q @ k.transpose(1, 2) / math.sqrt(x.shape[-1])
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = self.scores(scores.masked_fill(mask, float("-inf")))
        return x + self.out(torch.softmax(scores, dim=-1) @ v)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(20, 24)
        self.position = nn.Embedding(12, 24)
        self.blocks = nn.ModuleList([Block(), Block()])
        self.head = nn.Linear(24, 20)

    def forward(self, tokens):
        h = self.embed(tokens) + self.position(torch.arange(tokens.shape[1]))
        for block in self.blocks:
            h = block(h)
        return self.head(h)


torch.manual_seed(0)
model = Model()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(120):
    start = torch.randint(0, 20, (16, 1))
    tokens = (start + torch.arange(13)) % 20
    logits = model(tokens[:, :-1])
    loss = nn.functional.cross_entropy(logits.reshape(-1, 20), tokens[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
