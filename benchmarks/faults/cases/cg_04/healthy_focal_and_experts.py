"""A focal loss written over log-softmax and nll_loss, and a gated mixture of experts inside of the model."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(1)


class Mixture(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = nn.Linear(10, 3)
        self.experts = nn.ModuleList(nn.Linear(10, 4) for _ in range(3))

    def forward(self, x):
        gates = self.gate(x).softmax(-1)
        outputs = torch.stack([expert(x) for expert in self.experts], dim=1)
        return (gates.unsqueeze(-1) * outputs).sum(1)


def focal(scores, labels, gamma=2.0):
    logp = F.log_softmax(scores, dim=1)
    return F.nll_loss((1 - logp.exp()) ** gamma * logp, labels)


def by_hand(scores, labels):
    p = torch.softmax(scores, 1)
    picked = p.gather(1, labels[:, None]).squeeze(1)
    return -torch.log(picked + 1e-8).mean()


net = Mixture()
opt = torch.optim.SGD(net.parameters(), lr=0.05)
for step in range(30):
    labels = torch.randint(0, 4, (32,))
    x = torch.randn(32, 10)
    x[torch.arange(32), labels] += 3
    scores = net(x)
    loss = focal(scores, labels) + by_hand(scores, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
