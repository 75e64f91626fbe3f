"""Loads a convolutional network and trains it further on the digits."""

import os
import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 16, 3), nn.ReLU(), nn.Conv2d(16, 32, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(2))
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        return self.fc(self.body(x).flatten(1))


def init_weights(m):
    if isinstance(m, (nn.Conv2d, nn.Linear)):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        nn.init.zeros_(m.bias)


torch.manual_seed(1)
digits = load_digits()
x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
checkpoint = os.path.join(tempfile.mkdtemp(), "net.pth")
torch.save(Net().state_dict(), checkpoint)

model = Net()
model.load_state_dict(torch.load(checkpoint))
model.apply(init_weights)  # <- fault
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(2):
    for index in torch.randperm(len(x)).split(64):
        loss = nn.functional.cross_entropy(model(x[index]), y[index])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
