"""Digits with strong augmentation: shifts, noise and erased patches, anew in every epoch."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Augmented(Dataset):
    def __init__(self, images, labels, train):
        self.images, self.labels, self.train = images, labels, train

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = self.images[index]
        if self.train:
            image = torch.roll(image, (int(torch.randint(-1, 2, ())), int(torch.randint(-1, 2, ()))), (1, 2))
            image = image + 0.1 * torch.randn_like(image)
            row, column = torch.randint(0, 6, (2,)).tolist()
            image = image.clone()
            image[:, row:row + 2, column:column + 2] = 0
        return image, self.labels[index]


torch.manual_seed(0)
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
labels = torch.tensor(digits.target)
order = torch.randperm(len(images))
train = DataLoader(Augmented(images[order[:1400]], labels[order[:1400]], True), batch_size=50, shuffle=True)
test = DataLoader(Augmented(images[order[1400:]], labels[order[1400:]], False), batch_size=200)
net = nn.Sequential(
    nn.Conv2d(1, 24, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(),
    nn.Flatten(), nn.Dropout(0.2), nn.Linear(48 * 16, 10),
)
opt = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(8):
    net.train()
    for x, y in train:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
    net.eval()
    with torch.no_grad():
        right = sum((net(x).argmax(1) == y).sum().item() for x, y in test)
    print(epoch, round(loss.item(), 3), right / 397)
