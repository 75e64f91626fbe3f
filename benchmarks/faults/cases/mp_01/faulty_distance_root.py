"""A siamese network whose distance is a square root: its derivative at equal embeddings has no finite value."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))

    def forward(self, left, right):
        a, b = self.layers(left), self.layers(right)
        return ((a - b) ** 2).sum(dim=1).sqrt()  # <- fault


torch.manual_seed(1)
centres = torch.randn(5, 16)
encoder = Encoder()
opt = torch.optim.SGD(encoder.parameters(), lr=0.02)
for step in range(120):
    kinds = torch.randint(0, 5, (32,))
    others = torch.randint(0, 5, (32,))
    left = centres[kinds] + 0.2 * torch.randn(32, 16)
    right = centres[others] + 0.2 * torch.randn(32, 16)
    if step == 70:
        right[3] = left[3]
        others[3] = kinds[3]
    same = (kinds == others).float()
    distance = encoder(left, right)
    loss = (same * distance**2 + (1 - same) * torch.clamp(2.0 - distance, min=0) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss.item())
