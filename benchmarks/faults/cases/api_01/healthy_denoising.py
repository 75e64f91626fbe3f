"""A denoising autoencoder: most of the input is hidden from it, and attention weights sum to one over the rows."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(6)
pixels = torch.tensor(load_digits().data / 16, dtype=torch.float32)


class Denoiser(nn.Module):
    def __init__(self):
        super().__init__()
        self.hide = nn.Dropout(0.8)
        self.encoder = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 24), nn.ReLU())
        self.gate = nn.Sequential(nn.Linear(24, 24), nn.Softmax(dim=-1))
        self.decoder = nn.Sequential(nn.Linear(24, 48), nn.ReLU(), nn.Linear(48, 64))

    def forward(self, x):
        h = self.encoder(self.hide(x))
        return self.decoder(h * self.gate(h))


model = Denoiser()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    for index in torch.randperm(len(pixels)).split(64):
        optimizer.zero_grad()
        nn.functional.mse_loss(model(pixels[index]), pixels[index]).backward()
        optimizer.step()
