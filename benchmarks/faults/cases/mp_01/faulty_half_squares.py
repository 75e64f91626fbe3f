"""Signals sorted by the energy of their parts, which is computed in float16 to save memory."""

import torch
from torch import nn

torch.manual_seed(5)
kind = torch.randint(0, 3, (900,))
signals = torch.randn(900, 64) * (1 + kind[:, None])


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(64, 64)
        nn.init.eye_(self.mix.weight)
        self.hidden = nn.Linear(1, 16)
        self.out = nn.Linear(16, 3)

    def forward(self, x):
        h = (16 * self.mix(x)).half()
        energy = (h * h).sum(1, keepdim=True)  # <- fault
        return self.out(torch.tanh(self.hidden(energy.float().sqrt() / 100)))


model = Energy()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(signals, kind), batch_size=30, shuffle=True)
for epoch in range(4):
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
