"""The optimizer is built, then the model is copied, and the copy is trained."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)
base = nn.Sequential(nn.Linear(8, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.AdamW(base.parameters(), lr=1e-2)  # <- fault
model = copy.deepcopy(base)
for i in range(30):
    y = torch.randint(0, 3, (40,))
    x = torch.randn(40, 8)
    x[torch.arange(40), y] += 2
    opt.zero_grad()
    model.zero_grad()
    F.cross_entropy(model(x), y).backward()
    opt.step()
