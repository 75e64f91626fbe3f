"""Zero where it is right: residual branches, an adaptive gate, low-rank adapters and the output layer."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)
        self.gate = nn.Linear(width, width)
        nn.init.zeros_(self.down.weight)
        nn.init.zeros_(self.gate.weight)
        nn.init.ones_(self.gate.bias)

    def forward(self, x):
        return x + self.gate(x) * self.down(F.gelu(self.up(self.norm(x))))


class LowRank(nn.Module):
    def __init__(self, width, rank=4):
        super().__init__()
        self.base = nn.Linear(width, width)
        self.A = nn.Parameter(torch.randn(rank, width) * 0.02)
        self.B = nn.Parameter(torch.zeros(width, rank))

    def forward(self, x):
        return self.base(x) + x @ self.A.T @ self.B.T


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.inp = nn.Linear(10, 24)
        self.blocks = nn.ModuleList(Residual(24) for _ in range(2))
        self.low = LowRank(24)
        self.head = nn.Linear(24, 5)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x):
        x = self.inp(x)
        for block in self.blocks:
            x = block(x)
        return self.head(F.relu(self.low(x)))


model = Model()
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for step in range(30):
    y = torch.randint(0, 5, (32,))
    x = torch.randn(32, 10)
    x[torch.arange(32), y] += 2
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
