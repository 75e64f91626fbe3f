"""A small masked-free transformer language model with tied input and output embeddings, and a cloned stack of layers."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
tokens = torch.cumsum(torch.randint(0, 3, (3000,)), 0) % 29


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.attention = nn.MultiheadAttention(d, heads, batch_first=True)
        self.ff = nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))
        self.norms = nn.ModuleList([nn.LayerNorm(d), nn.LayerNorm(d)])

    def forward(self, x, mask):
        y = self.norms[0](x)
        x = x + self.attention(y, y, y, attn_mask=mask, need_weights=False)[0]
        return x + self.ff(self.norms[1](x))


class LanguageModel(nn.Module):
    def __init__(self, size=29, d=32):
        super().__init__()
        self.tokens = nn.Embedding(size, d)
        self.positions = nn.Embedding(16, d)
        self.layers = clones(Layer(d, 4), 2)
        self.head = nn.Linear(d, size, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, x):
        t = x.size(1)
        mask = torch.triu(torch.full((t, t), float("-inf")), diagonal=1)
        h = self.tokens(x) + self.positions(torch.arange(t))
        for layer in self.layers:
            h = layer(h, mask)
        return self.head(h)


model = LanguageModel()
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(60):
    at = torch.randint(0, len(tokens) - 17, (24,))
    chunk = torch.stack([tokens[i : i + 17] for i in at])
    loss = F.cross_entropy(model(chunk[:, :-1]).transpose(1, 2), chunk[:, 1:])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
