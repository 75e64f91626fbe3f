"""A small convolutional network, trained from scratch."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, padding=1)
        self.conv2 = nn.Conv2d(8, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 4, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc(x.flatten(1))


torch.manual_seed(7)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1)
images = (images - images.mean()) / images.std()
data = TensorDataset(images, torch.tensor(digits.target))
train, test = random_split(data, [1400, 397])
train_loader = DataLoader(train, batch_size=32, shuffle=True)
test_loader = DataLoader(test, batch_size=256)

net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=1e-6, momentum=0.9)  # <- fault

for epoch in range(8):
    net.train()
    for image, label in train_loader:
        loss = F.cross_entropy(net(image), label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    net.eval()
    right = 0
    with torch.no_grad():
        for image, label in test_loader:
            right += (net(image).argmax(1) == label).sum().item()
    print(f"epoch {epoch}: {right / len(test):.3f}")
