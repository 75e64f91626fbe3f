"""Two transforms, written at two times."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Normalise:
    def __init__(self, mean, std):
        self.mean, self.std = mean, std

    def __call__(self, picture):
        return (picture - self.mean) / self.std


class Digits(Dataset):
    def __init__(self, part, transform):
        data = load_digits()
        generator = torch.Generator().manual_seed(5)
        order = torch.randperm(len(data.target), generator=generator)[part]
        self.pictures = torch.tensor(data.images[order.numpy()]).float().unsqueeze(1) / 16
        self.labels = torch.tensor(data.target)[order]
        self.transform = transform

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return self.transform(self.pictures[index]), self.labels[index]


torch.manual_seed(5)
train_set = Digits(slice(0, 1400), Normalise(0.305, 0.376))
valid_set = Digits(slice(1400, None), Normalise(0.5, 0.25))  # <- fault
train_loader = DataLoader(train_set, batch_size=70, shuffle=True)
valid_loader = DataLoader(valid_set, batch_size=100)
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(128, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
for epoch in range(4):
    model.train()
    for x, y in train_loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(x).argmax(1) == y).sum().item() for x, y in valid_loader) / len(valid_set))
