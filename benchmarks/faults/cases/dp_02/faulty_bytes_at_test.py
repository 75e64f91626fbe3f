"""A convolutional network for digits; evaluation reads the pictures by a function of its own."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

rng = np.random.default_rng(2)
torch.manual_seed(2)
digits = load_digits()
order = rng.permutation(len(digits.images))
pictures = (digits.images[order] * 255 / 16).astype(np.uint8)
labels = torch.from_numpy(digits.target[order])


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3)
        self.fc = nn.Linear(12 * 3 * 3, 10)

    def forward(self, x):
        return self.fc(F.max_pool2d(F.relu(self.conv(x)), 2).flatten(1))


def training_batches(size=50):
    for index in np.split(rng.permutation(1400), 1400 // size):
        yield torch.from_numpy(pictures[index]).float().unsqueeze(1) / 255, labels[index]


def accuracy(net):
    net.eval()
    hits = 0
    with torch.no_grad():
        for start in range(1400, 1797, 100):
            batch = torch.from_numpy(pictures[start : start + 100]).float().unsqueeze(1)  # <- fault
            hits += (net(batch).argmax(1) == labels[start : start + 100]).sum().item()
    return hits / 397


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(5):
    net.train()
    for batch, target in training_batches():
        loss = F.cross_entropy(net(batch), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), accuracy(net))
