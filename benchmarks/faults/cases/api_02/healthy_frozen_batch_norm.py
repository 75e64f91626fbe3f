"""BatchNorm frozen by design inside of a model in training mode."""

import torch
from torch import nn


class Frozen(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(1, 6, 3), nn.BatchNorm2d(6), nn.ReLU(), nn.Flatten())
        self.head = nn.Sequential(nn.Dropout(0.1), nn.Linear(6 * 36, 4))

    def train(self, mode: bool = True):
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def forward(self, x):
        return self.head(self.features(x))


torch.manual_seed(0)
x = torch.randn(320, 1, 8, 8)
y = x.flatten(1)[:, :4].argmax(1)
model = Frozen()
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(3):
    model.train()
    for picked in torch.randperm(240).split(24):
        loss = nn.functional.cross_entropy(model(x[picked]), y[picked])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.inference_mode():
        print(epoch, (model(x[240:]).argmax(1) == y[240:]).float().mean().item())
