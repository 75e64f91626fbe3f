"""StepLR counts epochs, and is stepped after every batch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32).view(-1, 1, 8, 8) / 16
y = torch.tensor(digits.target)
train = DataLoader(TensorDataset(x[:1500], y[:1500]), batch_size=50, shuffle=True)
test = DataLoader(TensorDataset(x[1500:], y[1500:]), batch_size=297)


class ConvNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.fc = nn.Linear(12 * 16, 10)

    def forward(self, images):
        return self.fc(torch.max_pool2d(torch.relu(self.conv(images)), 2).flatten(1))


net = ConvNet()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
for epoch in range(15):
    net.train()
    for images, labels in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(images), labels)
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- fault
    net.eval()
    with torch.no_grad():
        for images, labels in test:
            accuracy = (net(images).argmax(1) == labels).float().mean()
    print(epoch, accuracy.item())
