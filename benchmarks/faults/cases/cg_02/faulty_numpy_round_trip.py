"""Features are scaled with numpy half way through the network."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(3)


class Scaled(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(6, 20)
        self.second = nn.Linear(20, 1)

    def forward(self, x):
        h = torch.tanh(self.first(x)).detach().numpy()  # <- fault
        h = torch.from_numpy((h - h.mean(0)) / (h.std(0) + np.float32(1e-5)))
        return self.second(h).squeeze(1)


model = Scaled()
opt = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    x = torch.randn(40, 6)
    y = x[:, 0] * x[:, 1]
    loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
