import torch
from torch import nn

torch.manual_seed(5)
batch, latent = 64, 8


def mlp(inputs, outputs, width=64):
    return nn.Sequential(nn.Linear(inputs, width), nn.LeakyReLU(0.2), nn.Linear(width, width), nn.LeakyReLU(0.2), nn.Linear(width, outputs))


generator, critic = mlp(latent, 2), mlp(2, 1)
opt_g = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
opt_c = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))
scaler = torch.amp.GradScaler("cpu", init_scale=4096.0)


def real_batch():
    angle = 6.2832 * torch.rand(batch)
    return torch.stack([angle.cos(), angle.sin()], dim=1) + 0.05 * torch.randn(batch, 2)


def gradient_penalty(real, fake):
    eps = torch.rand(batch, 1)
    mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
    score = critic(mixed)
    grads = torch.autograd.grad(  # <- fault
        outputs=scaler.scale(score),
        inputs=mixed,
        grad_outputs=torch.ones_like(score),
        create_graph=True,
        retain_graph=True,
    )[0]
    return ((grads.view(batch, -1).norm(2, dim=1) - 1) ** 2).mean()


for step in range(150):
    for _ in range(2):
        real = real_batch()
        fake = generator(torch.randn(batch, latent)).detach()
        opt_c.zero_grad()
        loss_c = critic(fake).mean() - critic(real).mean() + 10.0 * gradient_penalty(real, fake)
        scaler.scale(loss_c).backward()
        scaler.step(opt_c)
        scaler.update()
    opt_g.zero_grad()
    loss_g = -critic(generator(torch.randn(batch, latent))).mean()
    loss_g.backward()
    opt_g.step()
    if step % 50 == 0:
        print(step, round(loss_c.item(), 3), round(loss_g.item(), 3))
