"""Binary cross-entropy with the label first and the prediction second."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(10)
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for _ in range(30):
    x = torch.randn(32, 6)
    y = (x.sum(1, keepdim=True) > 0).float()
    loss = F.binary_cross_entropy_with_logits(y, net(x))  # <- fault
    opt.zero_grad()
    loss.backward()
    opt.step()
