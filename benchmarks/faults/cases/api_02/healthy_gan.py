"""A GAN whose generator has BatchNorm: fakes made without gradients for the critic, pictures drawn in training mode."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
real = TensorDataset(torch.randn(512, 16) * 0.3 + 1)
loader = DataLoader(real, batch_size=64, shuffle=True, drop_last=True)
netG = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
netD = nn.Sequential(nn.Linear(16, 32), nn.LeakyReLU(0.2), nn.Dropout(0.2), nn.Linear(32, 1))
optG = torch.optim.Adam(netG.parameters(), lr=1e-3)
optD = torch.optim.Adam(netD.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
fixed = torch.randn(32, 8)
for epoch in range(3):
    for (batch,) in loader:
        with torch.no_grad():
            fake = netG(torch.randn(64, 8))
        optD.zero_grad()
        loss = bce(netD(batch), torch.ones(64, 1)) + bce(netD(fake), torch.zeros(64, 1))
        loss.backward()
        optD.step()
        optG.zero_grad()
        loss = bce(netD(netG(torch.randn(64, 8))), torch.ones(64, 1))
        loss.backward()
        optG.step()
    with torch.no_grad():
        print(epoch, netG(fixed).mean().item())
