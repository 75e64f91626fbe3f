import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader


class VAE(nn.Module):
    def __init__(self, latent=6):
        super().__init__()
        self.encoder = nn.Linear(64, 80)
        self.mu = nn.Linear(80, latent)
        self.logvar = nn.Linear(80, latent)
        self.expand = nn.Linear(latent, 80)
        self.decoder = nn.Linear(80, 64)

    def encode(self, x):
        h = F.relu(self.encoder(x))
        return self.mu(h), self.logvar(h)

    def reparameterize(self, mu, logvar):
        if not self.training:
            return mu
        return mu + torch.randn_like(mu) * torch.exp(0.5 * logvar)

    def decode(self, z):
        h = F.relu(self.expand(z))
        return self.decoder(h)

    def forward(self, x):
        mu, logvar = self.encode(x)
        return self.decode(self.reparameterize(mu, logvar)), mu, logvar


def elbo(logits, x, mu, logvar):
    reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
    divergence = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return (reconstruction + divergence) / x.size(0)


torch.manual_seed(42)
images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
images = images[torch.randperm(len(images))]
train_loader = DataLoader(images[:1500], batch_size=50, shuffle=True)
test_loader = DataLoader(images[1500:], batch_size=99)

vae = VAE()
optimizer = torch.optim.Adam(vae.parameters(), lr=2e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
for epoch in range(1, 9):
    vae.train()
    train_loss = 0.0
    for x in train_loader:
        logits, mu, logvar = vae(x)
        loss = elbo(logits, x, mu, logvar)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        train_loss += loss.item() * len(x)
    scheduler.step()
    vae.eval()
    with torch.no_grad():
        test_loss = sum(elbo(*[(r := vae(x))[0], x, r[1], r[2]]).item() * len(x) for x in test_loader)
    print(f"====> Epoch {epoch}: train {train_loss / 1500:.3f} test {test_loss / 297:.3f}")
