"""A small CNN that returns probabilities from forward, trained with F.cross_entropy."""

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv = nn.Conv2d(1, 8, 3)
        self.fc = nn.Linear(8 * 6 * 6, classes)

    def forward(self, x):
        x = F.relu(self.conv(x)).flatten(1)
        scores = self.fc(x)
        return F.softmax(scores, dim=-1)  # <- fault


def batches(count):
    for _ in range(count):
        labels = torch.randint(0, 4, (32,))
        images = torch.randn(32, 1, 8, 8) * 0.3
        images[torch.arange(32), 0, labels * 2] += 1.0
        yield images, labels


def main():
    torch.manual_seed(1)
    net = Net(4)
    opt = torch.optim.Adam(net.parameters(), lr=1e-3)
    for images, labels in batches(40):
        probs = net(images)
        loss = F.cross_entropy(probs, labels)
        opt.zero_grad()
        loss.backward()
        opt.step()


if __name__ == "__main__":
    main()
