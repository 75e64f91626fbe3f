"""Shuffled training loader, evaluation loader in order, augmentation on the fly."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, x, y, augment: bool) -> None:
        self.x, self.y, self.augment = x, y, augment

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index):
        image = self.x[index]
        return (image + 0.05 * torch.randn_like(image) if self.augment else image), self.y[index]


torch.manual_seed(0)
data = load_digits()
x = torch.tensor(data.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(data.target)
train_loader = DataLoader(Digits(x[:1200], y[:1200], True), batch_size=48, shuffle=True)
test_loader = DataLoader(Digits(x[1200:], y[1200:], False), batch_size=100)
model = nn.Sequential(nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 36, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    for inputs, targets in train_loader:
        loss = nn.functional.cross_entropy(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        hits = sum((model(a).argmax(1) == b).sum().item() for a, b in test_loader)
    print(epoch, hits)
