"""The freezing loop has its condition the wrong way round: the new head is frozen and the backbone trains."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 5)  # <- fault

    def forward(self, x):
        return self.head(self.backbone(x))


source = Net()
net = Net()
net.backbone.load_state_dict(source.backbone.state_dict())
for name, p in net.named_parameters():
    if "head" in name:
        p.requires_grad = False
opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.05)
for _ in range(30):
    y = torch.randint(0, 5, (32,))
    x = torch.randn(32, 12)
    x[torch.arange(32), y] += 2
    loss = F.cross_entropy(net(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
