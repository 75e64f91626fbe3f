"""One dataset class with shifts and noise, split afterwards."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split


class ShiftedDigits(Dataset):
    def __init__(self):
        data = load_digits()
        self.x = torch.tensor(data.images, dtype=torch.float32) / 16
        self.y = torch.tensor(data.target)

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        dy, dx = torch.randint(-1, 2, (2,)).tolist()
        picture = torch.roll(self.x[i], (dy, dx), dims=(0, 1))
        return picture.unsqueeze(0) + 0.02 * torch.randn(1, 8, 8), self.y[i]


torch.manual_seed(21)
dataset = ShiftedDigits()
train, valid = random_split(dataset, [1500, 297])
train_loader = DataLoader(train, batch_size=60, shuffle=True)
valid_loader = DataLoader(valid, batch_size=99)  # <- fault

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
        print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in valid_loader) / 297)
