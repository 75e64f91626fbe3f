"""Digits as 8-bit pictures through a small convolutional network."""

import numpy as np
import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Pictures(Dataset):
    def __init__(self, images, labels):
        self.images, self.labels = images, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        picture = np.kron(self.images[index], np.ones((2, 2)))
        return torch.from_numpy(picture).unsqueeze(0).float(), int(self.labels[index])  # <- fault


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


torch.manual_seed(1)
digits = load_digits()
pixels = (digits.images * 255 / 16).astype(np.uint8)
order = np.random.default_rng(1).permutation(len(pixels))
pixels, labels = pixels[order], digits.target[order]
loader = DataLoader(Pictures(pixels[:1400], labels[:1400]), batch_size=50, shuffle=True)
valid = DataLoader(Pictures(pixels[1400:], labels[1400:]), batch_size=100)
net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
for epoch in range(3):
    net.train()
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        print(epoch, sum((net(x).argmax(1) == y).sum().item() for x, y in valid) / 397)
