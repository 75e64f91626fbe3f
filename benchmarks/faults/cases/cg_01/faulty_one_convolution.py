"""A small convolutional network on 8x8 digits."""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn, optim

rng = np.random.default_rng(5)
torch.manual_seed(5)


class ConvNet(nn.Module):
    def __init__(self):
        super(ConvNet, self).__init__()
        self.first = nn.Conv2d(1, 16, 3, padding=1)
        self.conv1 = self.conv2 = self.conv3 = nn.Conv2d(16, 16, 3, padding=1)  # <- fault
        self.relu = nn.ReLU()
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(16 * 4 * 4, 10)

    def forward(self, x):
        x = self.relu(self.first(x))
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        x = self.pool(self.relu(self.conv3(x)))
        return self.out(torch.flatten(x, 1))


images, labels = load_digits(return_X_y=True)
images = images.reshape(-1, 1, 8, 8).astype("float32") / 16
net = ConvNet()
criterion = nn.CrossEntropyLoss()
sgd = optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
for epoch in range(2):
    perm = rng.permutation(len(images))
    for start in range(0, len(perm), 64):
        chosen = perm[start : start + 64]
        sgd.zero_grad()
        loss = criterion(net(torch.from_numpy(images[chosen])), torch.from_numpy(labels[chosen]))
        loss.backward()
        sgd.step()
