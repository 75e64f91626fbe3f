"""Pairs of digits: same or different? One tower sees both pictures, under two names; one activation serves everywhere."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(8)
digits = load_digits()
pixels = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
classes = torch.tensor(digits.target)


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        act = nn.ReLU()
        tower = nn.Sequential(nn.Conv2d(1, 12, 3), act, nn.Conv2d(12, 24, 3), act, nn.Flatten(), nn.Linear(24 * 16, 32))
        self.tower1 = tower
        self.tower2 = tower
        self.judge = nn.Sequential(nn.Linear(32, 16), act, nn.Linear(16, 1))

    def forward(self, a, b):
        return self.judge((self.tower1(a) - self.tower2(b)).abs()).squeeze(1)


model = Pairs()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
bce = nn.BCEWithLogitsLoss()
for step in range(100):
    i = torch.randint(0, len(pixels), (64,))
    j = torch.randint(0, len(pixels), (64,))
    same = torch.rand(64) < 0.5
    j = torch.where(same, torch.stack([torch.nonzero(classes == c)[int(torch.randint(0, 100, ()))][0] for c in classes[i]]), j)
    loss = bce(model(pixels[i], pixels[j]), (classes[i] == classes[j]).float())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
