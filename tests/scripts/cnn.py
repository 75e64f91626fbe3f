"""A convolutional net with BatchNorm and random flips on synthetic pictures: bright bars, upright or level."""

import numpy as np
import torch
import torch.nn.functional as F
from probe import report, seed_everything
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Bars(Dataset):
    def __init__(self, count, augment):
        self.labels = np.random.randint(0, 2, count)
        self.images = np.random.rand(count, 1, 12, 12).astype("float32") * 0.5
        for image, label in zip(self.images, self.labels):
            at = np.random.randint(1, 11)
            if label:
                image[0, :, at] += 1.0
            else:
                image[0, at, :] += 1.0
        self.augment = augment

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index])
        if self.augment and torch.rand(()) < 0.5:
            image = image.flip(-1)
        return image, int(self.labels[index])


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(16)
        self.fc = nn.Linear(16 * 3 * 3, 2)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.bn1(self.conv1(x))), 2)
        x = F.max_pool2d(F.relu(self.bn2(self.conv2(x))), 2)
        return self.fc(x.flatten(1))


seed_everything(5)
train_loader = DataLoader(Bars(320, augment=True), batch_size=32, shuffle=True)
val_loader = DataLoader(Bars(96, augment=False), batch_size=96)
net = ConvNet()
optimizer = torch.optim.AdamW(net.parameters(), lr=3e-3)

for epoch in range(3):
    net.train()
    for images, labels in train_loader:
        loss = F.cross_entropy(net(images), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        print("loss", repr(loss.item()))
    net.eval()
    with torch.inference_mode():
        hits = sum((net(images).argmax(1) == labels).sum().item() for images, labels in val_loader)
    print("val", epoch, hits / 96)

report(net, optimizer)
