"""NLLLoss on the raw scores of the last layer."""

import torch
from torch import nn

torch.manual_seed(5)
centers = torch.randn(3, 6) * 2
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 3))
criterion = nn.NLLLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)

for step in range(40):
    labels = torch.randint(0, 3, (48,))
    points = centers[labels] + torch.randn(48, 6)
    output = model(points)
    loss = criterion(output, labels)  # <- fault
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
