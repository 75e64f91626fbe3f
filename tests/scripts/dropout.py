"""Every kind of dropout and noise: the random stream must reach each of them untouched."""

import random

import numpy as np
import torch
import torch.nn.functional as F
from probe import report, seed_everything
from torch import nn


class Noisy(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(4, 8, 3, padding=1)
        self.channels = nn.Dropout1d(0.2)
        self.units = nn.Dropout(0.3)
        self.alpha = nn.AlphaDropout(0.1)
        self.hidden = nn.Linear(64, 32)
        self.out = nn.Linear(32, 3)

    def forward(self, x):
        x = self.channels(F.selu(self.conv(x)))
        x = F.selu(self.hidden(self.units(x.flatten(1))))
        if self.training:
            x = x + 0.05 * torch.randn_like(x)
        return self.out(F.dropout(self.alpha(x), 0.1, self.training))


seed_everything(99)
inputs = torch.randn(256, 4, 8)
labels = inputs.mean(dim=2)[:, :3].argmax(dim=1)
model = Noisy()
optimizer = torch.optim.RMSprop(model.parameters(), lr=2e-3)

for epoch in range(6):
    model.train()
    order = np.random.permutation(len(inputs))
    for start in range(0, len(order), 32):
        rows = torch.from_numpy(order[start : start + 32])
        batch = inputs[rows] * (1.0 + 0.01 * random.random())
        loss = F.cross_entropy(model(batch), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()))
    model.eval()
    with torch.no_grad():
        print("accuracy", epoch, (model(inputs).argmax(1) == labels).float().mean().item())

report(model, optimizer)
