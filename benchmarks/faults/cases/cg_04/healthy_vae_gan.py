"""A VAE with summed losses next to a GAN with BCE of sigmoid outputs."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(2)


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Linear(16, 32)
        self.mu, self.logvar = nn.Linear(32, 4), nn.Linear(32, 4)
        self.dec = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        h = F.relu(self.enc(x))
        mu, logvar = self.mu(h), self.logvar(h)
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return torch.sigmoid(self.dec(z)), mu, logvar


vae = VAE()
opt = torch.optim.Adam(vae.parameters(), lr=1e-3)
data = torch.rand(256, 16)
for step in range(15):
    x = data[torch.randint(0, 256, (32,))]
    recon, mu, logvar = vae(x)
    loss = F.binary_cross_entropy(recon, x, reduction="sum") - 0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    opt.zero_grad()
    loss.backward()
    opt.step()

G = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 16), nn.Sigmoid())
D = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1), nn.Sigmoid())
opt_g, opt_d = torch.optim.Adam(G.parameters(), 1e-3), torch.optim.Adam(D.parameters(), 1e-3)
bce = nn.BCELoss()
real, fake = torch.ones(32, 1), torch.zeros(32, 1)
for step in range(15):
    x = data[torch.randint(0, 256, (32,))]
    made = G(torch.randn(32, 4))
    d_loss = bce(D(x), real) + bce(D(made.detach()), fake)
    opt_d.zero_grad()
    d_loss.backward()
    opt_d.step()
    g_loss = bce(D(made), real)
    opt_g.zero_grad()
    g_loss.backward()
    opt_g.step()
