"""A small causal language model, with its attention written out."""

import math

import numpy as np
import torch
import torch.nn as nn
from torch.nn import functional as F

VOCAB, LENGTH, WIDTH, HEADS, DEPTH = 40, 24, 32, 4, 2
STEPS, BATCH = 80, 16

torch.manual_seed(5)


def make_text(size=6000):
    """Each word is followed by one of three words of its own, sometimes by any."""
    rng = np.random.default_rng(0)
    followers = rng.integers(0, VOCAB, (VOCAB, 3))
    text = [0]
    for _ in range(size - 1):
        text.append(followers[text[-1], rng.integers(3)] if rng.random() < 0.9 else rng.integers(VOCAB))
    return np.array(text)


class CausalSelfAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)
        self.proj = nn.Linear(WIDTH, WIDTH)
        self.register_buffer("mask", torch.tril(torch.ones(LENGTH, LENGTH)).bool())

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (each.view(b, t, HEADS, c // HEADS).transpose(1, 2) for each in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // HEADS)
        weights = scores.masked_fill(~self.mask[:t, :t], -1e9).softmax(dim=-1)
        return self.proj((weights @ v).transpose(1, 2).reshape(b, t, c))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln1 = nn.LayerNorm(WIDTH)
        self.attn = CausalSelfAttention()
        self.ln2 = nn.LayerNorm(WIDTH)
        self.fc = nn.Linear(WIDTH, 4 * WIDTH)
        self.proj = nn.Linear(4 * WIDTH, WIDTH)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        x = x + self.drop(self.attn(self.ln1(x)))
        return x + self.drop(self.proj(F.gelu(self.fc(self.ln2(x)))))


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte = nn.Embedding(VOCAB, WIDTH)
        self.wpe = nn.Embedding(LENGTH, WIDTH)
        self.blocks = nn.ModuleList(Block() for _ in range(DEPTH))
        self.ln_f = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, VOCAB)
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, ids):
        x = self.wte(ids) + self.wpe(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.ln_f(x))


text = make_text()
rng = np.random.default_rng(11)
model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.1)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 60], gamma=0.4)

model.train()
for step in range(STEPS):
    rows = rng.integers(0, len(text) - LENGTH, BATCH)[:, None] + np.arange(LENGTH)
    x, y = torch.from_numpy(text[rows]), torch.from_numpy(text[rows + 1])
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    optimizer.step()
    scheduler.step()
    if step % 10 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
