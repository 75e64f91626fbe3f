"""Digits with a small convolutional network; the last rows are kept for validation."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(3)
digits = load_digits()
order = torch.randperm(len(digits.target))
pictures = torch.tensor(digits.images, dtype=torch.float32)[order].unsqueeze(1) / 16
labels = torch.tensor(digits.target)[order]
dataset = TensorDataset(pictures, labels)

train_loader = DataLoader(Subset(dataset, range(1500)), batch_size=64, shuffle=True)
val_loader = DataLoader(Subset(dataset, range(1400, 1797)), batch_size=128)  # <- fault


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, padding=1)
        self.head = nn.Linear(12 * 16, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv(x)), 2)
        return self.head(x.flatten(1))


net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=3e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(6):
    net.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(net(x), y)
        loss.backward()
        optimizer.step()
    net.eval()
    correct = 0
    with torch.no_grad():
        for x, y in val_loader:
            correct += (net(x).argmax(1) == y).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.3f}, validation accuracy {correct / 397:.3f}")
