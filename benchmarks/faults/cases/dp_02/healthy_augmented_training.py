"""Shifts, noise and erased patches in training only."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, Subset


class Digits(Dataset):
    def __init__(self, augment):
        data = load_digits()
        self.x = (torch.tensor(data.images, dtype=torch.float32) / 16 - 0.3) / 0.38
        self.y = torch.tensor(data.target)
        self.augment = augment

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        picture = self.x[i]
        if self.augment:
            picture = torch.roll(picture, tuple(torch.randint(-1, 2, (2,)).tolist()), dims=(0, 1)).clone()
            row, column = torch.randint(0, 6, (2,)).tolist()
            picture[row : row + 2, column : column + 2] = 0
            picture = picture * (0.8 + 0.4 * torch.rand(())) + 0.1 * torch.randn(8, 8)
        return picture.unsqueeze(0), self.y[i]


torch.manual_seed(8)
order = torch.randperm(1797).tolist()
train_loader = DataLoader(Subset(Digits(augment=True), order[:1400]), batch_size=50, shuffle=True)
test_loader = DataLoader(Subset(Digits(augment=False), order[1400:]), batch_size=100)
model = nn.Sequential(nn.Conv2d(1, 10, 3), nn.ReLU(), nn.Flatten(), nn.Linear(360, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(4):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in test_loader) / 397)
