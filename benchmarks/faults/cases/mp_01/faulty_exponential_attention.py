"""Attention pooling with a softmax written by hand, on scores in float16: the exponential passes 65504."""

import torch
from torch import nn


class AttentionPool(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.project = nn.Linear(5, width)
        self.score = nn.Linear(width, 1)
        self.classify = nn.Linear(width, 3)

    def forward(self, x):
        h = torch.relu(self.project(x))
        scores = self.score(h).squeeze(-1).half()
        weights = torch.exp(scores)  # <- fault
        weights = (weights / weights.sum(dim=1, keepdim=True)).float()
        return self.classify((weights.unsqueeze(-1) * h).sum(dim=1))


torch.manual_seed(2)
net = AttentionPool()
optimizer = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.9)
for step in range(300):
    x = torch.randn(48, 10, 5)
    y = torch.randint(0, 3, (48,))
    place = torch.randint(0, 10, (48,))
    x[torch.arange(48), place, 3] = 4.0
    x[torch.arange(48), place, 4] = y.float() * 2 - 2
    loss = nn.functional.cross_entropy(net(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 30 == 0:
        print(step, loss.item())
