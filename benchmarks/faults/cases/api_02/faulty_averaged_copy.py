"""Digits with a small residual net; the weights are averaged while training, and the average is what gets validated."""
import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv = nn.Conv2d(width, width, 3, padding=1)
        self.norm = nn.BatchNorm2d(width)

    def forward(self, x):
        return x + F.relu(self.norm(self.conv(x)))


class Net(nn.Module):
    def __init__(self, width=24):
        super().__init__()
        self.stem = nn.Conv2d(1, width, 3, padding=1)
        self.blocks = nn.Sequential(Block(width), nn.MaxPool2d(2), Block(width))
        self.drop = nn.Dropout(0.3)
        self.head = nn.Linear(width * 16, 10)

    def forward(self, x):
        return self.head(self.drop(self.blocks(self.stem(x)).flatten(1)))


def validate(net, average, loader):
    net.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += (average(x).argmax(1) == y).sum().item()  # <- fault
    net.train()
    return right / len(loader.dataset)


def main(epochs=6, decay=0.95):
    torch.manual_seed(5)
    digits = load_digits()
    x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(digits.target)
    order = torch.randperm(len(x))
    train = DataLoader(TensorDataset(x[order[:1400]], y[order[:1400]]), batch_size=50, shuffle=True)
    valid = DataLoader(TensorDataset(x[order[1400:]], y[order[1400:]]), batch_size=8)
    net = Net()
    average = copy.deepcopy(net).requires_grad_(False)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    for epoch in range(epochs):
        for images, labels in train:
            loss = F.cross_entropy(net(images), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            with torch.no_grad():
                for slow, fast in zip(average.state_dict().values(), net.state_dict().values()):
                    slow.copy_(decay * slow + (1 - decay) * fast)
        print(epoch, f"{loss.item():.4f}", f"{validate(net, average, valid):.4f}")


main()
