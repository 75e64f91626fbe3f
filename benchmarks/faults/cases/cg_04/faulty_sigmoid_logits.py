"""Multi-label training: sigmoid in the training loop, and BCEWithLogitsLoss behind it."""

import torch
from torch import nn

torch.manual_seed(2)
x = torch.randn(512, 20)
y = (x @ torch.randn(20, 5) > 0).float()

encoder = nn.Sequential(nn.Linear(20, 32), nn.Tanh())
head = nn.Linear(32, 5)
bce = nn.BCEWithLogitsLoss()
opt = torch.optim.AdamW([*encoder.parameters(), *head.parameters()], lr=1e-2)

for step in range(40):
    index = torch.randint(0, 512, (64,))
    out = head(encoder(x[index]))
    out = torch.sigmoid(out)  # <- fault
    loss = bce(out.squeeze(), y[index])
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
