"""A small residual network on noisy colour patterns."""

import numpy as np
import torch
from torch import nn
from torch.nn.functional import relu
from torch.utils.data import DataLoader, TensorDataset

CLASSES = 6


def make_images(count, seed):
    patterns = np.random.default_rng(99).uniform(0, 255, (CLASSES, 3, 16, 16))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    images = 0.4 * patterns[labels] + 0.6 * rng.uniform(0, 255, (count, 3, 16, 16))
    return images.astype(np.uint8), labels


def to_dataset(images, labels):
    pixels = torch.from_numpy(images).float() / 255
    return TensorDataset((pixels - 0.5) / 0.22, torch.from_numpy(labels))


class BasicBlock(nn.Module):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(in_planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = None
        if stride != 1 or in_planes != planes:
            self.downsample = nn.Sequential(nn.Conv2d(in_planes, planes, 1, stride=stride, bias=False), nn.BatchNorm2d(planes))

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return relu(out + identity)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 12, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(12)
        self.layer1 = nn.Sequential(BasicBlock(12, 12), BasicBlock(12, 12))
        self.layer2 = nn.Sequential(BasicBlock(12, 24, stride=2), BasicBlock(24, 24))
        self.fc = nn.Linear(24, CLASSES)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x):
        x = relu(self.bn1(self.conv1(x)))
        x = self.layer2(self.layer1(x))
        return self.fc(x.mean(dim=(2, 3)))


torch.manual_seed(7)
train_loader = DataLoader(to_dataset(*make_images(1024, seed=1)), batch_size=32, shuffle=True)
test_loader = DataLoader(to_dataset(*make_images(256, seed=2)), batch_size=64)
model = ResNet()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9, weight_decay=2e-3)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.2)

for epoch in range(2):
    model.train()
    for i, (images, labels) in enumerate(train_loader):
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        scheduler.step()
        if i % 10 == 9:
            print(f"epoch {epoch} batch {i + 1}: loss {loss.item():.4f}")
    model.eval()
    with torch.no_grad():
        correct = sum((model(images).argmax(1) == labels).sum().item() for images, labels in test_loader)
    print(f"epoch {epoch}: accuracy {correct / 256:.3f}")
