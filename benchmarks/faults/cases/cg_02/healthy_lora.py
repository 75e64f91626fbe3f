"""Low-rank adapters beside frozen weights, in two styles; the rest of the network is frozen too."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)


class LoRALinear(nn.Module):
    def __init__(self, inputs, outputs, rank=2):
        super().__init__()
        self.base = nn.Linear(inputs, outputs)
        self.base.requires_grad_(False)
        self.down = nn.Linear(inputs, rank, bias=False)
        self.up = nn.Linear(rank, outputs, bias=False)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.up(self.down(x))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.attend = LoRALinear(width, width)
        self.mlp = nn.Linear(width, width)
        self.mlp.requires_grad_(False)

    def forward(self, x):
        return x + torch.relu(self.mlp(self.attend(x)))


net = nn.Sequential(nn.Linear(10, 24), Block(24), Block(24), nn.Linear(24, 4))
net[0].requires_grad_(False)
opt = torch.optim.AdamW(filter(lambda p: p.requires_grad, net.parameters()), lr=1e-2)
for step in range(30):
    y = torch.randint(0, 4, (32,))
    x = torch.randn(32, 10)
    x[torch.arange(32), y] += 2
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
