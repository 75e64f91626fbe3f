"""F.dropout without the mode of its module: it goes on dropping values in evaluation."""

import torch
import torch.nn.functional as F
from torch import nn


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(12, 40)
        self.second = nn.Linear(40, 3)

    def forward(self, x):
        x = F.relu(self.first(x))
        x = F.dropout(x, 0.5)  # <- fault
        return self.second(x)


torch.manual_seed(0)
x = torch.randn(450, 12)
y = x[:, :3].argmax(1)
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(4):
    model.train()
    for picked in torch.randperm(350).split(35):
        loss = F.cross_entropy(model(x[picked]), y[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        accuracy = (model(x[350:]).argmax(1) == y[350:]).float().mean()
    print(epoch, accuracy.item())
