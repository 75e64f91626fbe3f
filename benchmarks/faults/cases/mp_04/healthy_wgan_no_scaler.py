import torch
from torch import nn

torch.manual_seed(5)
generator = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 2))
critic = nn.Sequential(nn.Linear(2, 64), nn.LeakyReLU(0.2), nn.Linear(64, 1))
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
for step in range(150):
    for _ in range(3):
        angle = 6.2832 * torch.rand(64)
        real = torch.stack([angle.cos(), angle.sin()], dim=1)
        fake = generator(torch.randn(64, 8)).detach()
        eps = torch.rand(64, 1)
        mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
        grads = torch.autograd.grad(critic(mixed).sum(), mixed, create_graph=True)[0]
        penalty = 10 * ((grads.norm(2, dim=1) - 1) ** 2).mean()
        loss = critic(fake).mean() - critic(real).mean() + penalty
        opt_c.zero_grad()
        loss.backward()
        opt_c.step()
    opt_g.zero_grad()
    (-critic(generator(torch.randn(64, 8))).mean()).backward()
    opt_g.step()
print(loss.item())
