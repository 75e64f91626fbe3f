"""Handwritten digits with a small convolutional network."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits

EPOCHS = 4
BATCH = 64

torch.manual_seed(0)

digits = load_digits()
images = ((digits.images / 16.0 - 0.305) / 0.376).astype(np.float32)[:, None]
labels = digits.target.astype(np.int64)
train_x, train_y = images[:1536], labels[:1536]
test_x, test_y = torch.from_numpy(images[1536:]), torch.from_numpy(labels[1536:])


class DigitNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, stride=2, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)
        self.fc1 = nn.Linear(32 * 4 * 4, 64)
        self.fc2 = nn.Linear(64, 10)
        nn.init.kaiming_normal_(self.conv1.weight, nonlinearity="relu")
        nn.init.kaiming_normal_(self.conv2.weight, nonlinearity="relu")

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.relu(self.bn2(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        return self.fc2(x)


net = DigitNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.02, momentum=0.9, nesterov=True, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[30, 60], gamma=0.3)

rng = np.random.default_rng(1)
step = 0
for epoch in range(EPOCHS):
    net.train()
    order = rng.permutation(len(train_x))
    for start in range(0, len(order), BATCH):
        picked = order[start : start + BATCH]
        x, y = torch.from_numpy(train_x[picked]), torch.from_numpy(train_y[picked])
        optimizer.zero_grad()
        logits = net(x)
        loss = F.cross_entropy(logits, y)
        loss.backward()
        optimizer.step()
        scheduler.step()
        step += 1
        if step % 8 == 0:
            print(f"step {step} loss {loss.item():.4f}")

net.eval()
with torch.no_grad():
    accuracy = (net(test_x).argmax(1) == test_y).float().mean().item()
print(f"accuracy on held-out digits: {accuracy:.3f}")
