"""A hand-picked list of parameter groups forgets the middle of a network that is not pretrained."""

import torch
from torch import nn


class Deep(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv1d(2, 8, 3, padding=1)
        self.body = nn.Sequential(nn.Conv1d(8, 8, 3, padding=1), nn.ReLU(), nn.Conv1d(8, 8, 3, padding=1), nn.ReLU())
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.body(torch.relu(self.stem(x))).mean(-1))


torch.manual_seed(3)
net = Deep()
groups = [{"params": net.stem.parameters(), "lr": 1e-3}, {"params": net.head.parameters(), "lr": 1e-2}]
optim = torch.optim.SGD(groups, momentum=0.9)  # <- fault
sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, 30)
for it in range(30):
    y = torch.randint(0, 2, (16,))
    x = torch.randn(16, 2, 20) + y[:, None, None]
    loss = nn.CrossEntropyLoss()(net(x), y)
    optim.zero_grad()
    loss.backward()
    optim.step()
    sched.step()
