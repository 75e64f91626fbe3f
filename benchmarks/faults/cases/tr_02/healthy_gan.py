"""Two optimizers, each with its own part; the generator gets gradients during its own step through the discriminator."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(4)
gen = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
disc = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
opt_g = torch.optim.Adam(gen.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = torch.optim.Adam(disc.parameters(), lr=1e-3, betas=(0.5, 0.999))
for step in range(20):
    real = torch.randn(32, 2) * 0.3 + 1
    fake = gen(torch.randn(32, 4))
    loss_d = F.softplus(-disc(real)).mean() + F.softplus(disc(fake.detach())).mean()
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    loss_g = F.softplus(-disc(fake)).mean()
    opt_g.zero_grad()
    loss_g.backward()
    opt_g.step()
