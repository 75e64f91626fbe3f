"""Self-supervised pair with stop-gradient, a moving-average target in the same module, and a detached value head."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(7)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.online = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 8))
        self.predictor = nn.Linear(8, 8)
        self.target = copy.deepcopy(self.online)
        for p in self.target.parameters():
            p.requires_grad = False
        self.value = nn.Linear(8, 1)

    def forward(self, a, b):
        z = self.online(a)
        with torch.no_grad():
            t = self.target(b)
        return self.predictor(z), t.detach(), self.value(z.detach())

    @torch.no_grad()
    def update(self):
        for old, new in zip(self.target.parameters(), self.online.parameters()):
            old.lerp_(new, 0.05)


pair = Pair()
opt = torch.optim.SGD([p for p in pair.parameters() if p.requires_grad], lr=0.05, momentum=0.9)
for step in range(30):
    x = torch.randn(32, 12)
    guess, wanted, value = pair(x + 0.1 * torch.randn_like(x), x + 0.1 * torch.randn_like(x))
    loss = -F.cosine_similarity(guess, wanted).mean() + F.mse_loss(value.squeeze(1), x.norm(dim=1))
    opt.zero_grad()
    loss.backward()
    opt.step()
    pair.update()
