"""Log-softmax over axis 0: the samples of a batch compete instead of the classes."""

import torch
from torch import nn

torch.manual_seed(7)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(12, 32)
        self.out = nn.Linear(32, 6)

    def forward(self, x):
        x = torch.relu(self.hidden(x))
        return torch.log_softmax(self.out(x), dim=0)  # <- fault


net = Classifier()
nll = nn.NLLLoss()
opt = torch.optim.Adam(net.parameters())
for _ in range(30):
    y = torch.randint(0, 6, (40,))
    x = torch.randn(40, 12)
    x[torch.arange(40), y] += 2
    opt.zero_grad()
    nll(net(x), y).backward()
    opt.step()
