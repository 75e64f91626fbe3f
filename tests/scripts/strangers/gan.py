"""GAN on a ring of 2-d gaussians. Two optimizers, non-saturating loss."""

import math
import torch
from torch import nn, optim

torch.manual_seed(0)
Z, BATCH, STEPS = 8, 64, 150

G = nn.Sequential(nn.Linear(Z, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 2))
D = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = optim.Adam(G.parameters(), lr=1e-3, betas=(0.5, 0.999))
opt_d = optim.Adam(D.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()


def real_batch(n):
    angle = torch.randint(0, 8, (n,)) * (2 * math.pi / 8)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(n, 2)


ones, zeros = torch.ones(BATCH, 1), torch.zeros(BATCH, 1)
for step in range(STEPS):
    # --- discriminator
    fake = G(torch.randn(BATCH, Z))
    opt_d.zero_grad()
    loss_d = bce(D(real_batch(BATCH)), ones) + bce(D(fake.detach()), zeros)
    loss_d.backward()
    opt_d.step()

    # --- generator
    opt_g.zero_grad()
    loss_g = bce(D(fake), ones)
    loss_g.backward()
    opt_g.step()

    if step % 50 == 0:
        print(f"[{step:4d}] D {loss_d.item():.3f}  G {loss_g.item():.3f}")

G.eval()
with torch.no_grad():
    samples = G(torch.randn(256, Z))
print("mean radius of the samples: %.3f" % samples.norm(dim=1).mean())
