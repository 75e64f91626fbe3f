"""A convolutional network on digits with plain stochastic gradient descent."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
digits = load_digits()
data = TensorDataset(torch.tensor(digits.images, dtype=torch.float32)[:, None] / 16, torch.tensor(digits.target))
train, test = random_split(data, [1437, 360])
train_loader = DataLoader(train, batch_size=32, shuffle=True)
test_loader = DataLoader(test, batch_size=120)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, padding=1)
        self.fc1 = nn.Linear(16 * 16, 64)
        self.fc2 = nn.Linear(64, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


net = Net()
optimizer = torch.optim.SGD(net.parameters(), lr=0.01)
for epoch in range(2):  # <- fault
    for images, labels in train_loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch + 1}: loss {loss.item():.3f}")

net.eval()
right = 0
with torch.no_grad():
    for images, labels in test_loader:
        right += (net(images).argmax(1) == labels).sum().item()
print(f"accuracy {right / len(test):.3f}")
