"""The features are detached before the head, so that the encoder never learns."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16))
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        features = self.encoder(x)
        features = torch.relu(features.detach())  # <- fault
        return self.head(features)


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range(30):
    y = torch.randint(0, 4, (32,))
    x = torch.randn(32, 10)
    x[torch.arange(32), y] += 2
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
