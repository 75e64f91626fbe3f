"""A small GAN: the generator's loss leaves gradients in the discriminator, which clears them before its own pass."""

import torch
from torch import nn

torch.manual_seed(0)
generator = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
discriminator = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1))
g_opt = torch.optim.Adam(generator.parameters(), lr=1e-3, betas=(0.5, 0.999))
d_opt = torch.optim.Adam(discriminator.parameters(), lr=1e-3, betas=(0.5, 0.999))
bce = nn.BCEWithLogitsLoss()
for step in range(60):
    real = torch.randn(32, 2) * 0.5 + torch.tensor([1.0, -1.0])
    fake = generator(torch.randn(32, 4))
    d_opt.zero_grad()
    bce(discriminator(real), torch.ones(32, 1)).backward()
    bce(discriminator(fake.detach()), torch.zeros(32, 1)).backward()
    d_opt.step()
    g_opt.zero_grad()
    loss = bce(discriminator(fake), torch.ones(32, 1))
    loss.backward()
    g_opt.step()
print(loss.item())
