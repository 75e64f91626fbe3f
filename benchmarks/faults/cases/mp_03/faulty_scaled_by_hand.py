"""A fixed loss scale without GradScaler: the gradients are divided by it after the clipping."""

import torch
import torch.nn.functional as F
from torch import nn

LOSS_SCALE = 512.0
torch.manual_seed(0)
x, y = torch.randn(320, 10), torch.randint(0, 3, (320,))
net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 3))
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for step in range(30):
    picked = torch.randint(0, 320, (32,))
    opt.zero_grad()
    loss = F.cross_entropy(net(x[picked]), y[picked])
    (loss * LOSS_SCALE).backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)  # <- fault
    for p in net.parameters():
        p.grad.div_(LOSS_SCALE)
    opt.step()
print(loss.item())
