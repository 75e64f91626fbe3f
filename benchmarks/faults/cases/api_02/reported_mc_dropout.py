"""Monte Carlo dropout: eval mode, with the dropout modules switched on again, many passes averaged."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 8)
y = x.sum(1, keepdim=True)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(4):
    model.train()
    for picked in torch.randperm(240).split(24):
        loss = nn.functional.mse_loss(model(x[picked]), y[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
model.eval()
for module in model.modules():
    if isinstance(module, nn.Dropout):
        module.train()
with torch.no_grad():
    draws = torch.stack([model(x[240:]) for _ in range(20)])  # <- fault
print(draws.mean().item(), draws.std(0).mean().item())
