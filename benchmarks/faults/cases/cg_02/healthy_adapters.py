"""Bottleneck adapters between the frozen layers of a network that stands for a pretrained one; the head trains too."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(9)


class Adapter(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.down = nn.Linear(width, 4)
        self.up = nn.Linear(4, width)

    def forward(self, x):
        return x + self.up(torch.relu(self.down(x)))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.wide = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)
        self.adapter = Adapter(width)

    def forward(self, x):
        return self.adapter(x + self.narrow(torch.relu(self.wide(x))))


model = nn.Sequential(nn.Linear(6, 32), Block(32), Block(32), Block(32), nn.Linear(32, 3))
for name, parameter in model.named_parameters():
    parameter.requires_grad = "adapter" in name or name.startswith("4.")
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
for step in range(20):
    x = torch.randn(32, 6)
    loss = F.cross_entropy(model(x), x[:, :3].argmax(1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
