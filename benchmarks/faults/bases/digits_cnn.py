"""Small convolutional network on 8x8 digits."""
import argparse

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch.utils.data import DataLoader, Dataset


class Digits(Dataset):
    def __init__(self, images, labels):
        self.images = images
        self.labels = labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        image = torch.from_numpy(self.images[index]).float().unsqueeze(0) / 16.0
        return image, int(self.labels[index])


class ConvNet(nn.Module):
    def __init__(self, num_classes=10):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 12, 3, padding=1)
        self.bn1 = nn.BatchNorm2d(12)
        self.conv2 = nn.Conv2d(12, 24, 3, padding=1)
        self.fc1 = nn.Linear(24 * 4 * 4, 64)
        self.drop = nn.Dropout(0.25)
        self.fc2 = nn.Linear(64, num_classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = x.flatten(1)
        x = F.relu(self.fc1(x))
        x = self.drop(x)
        return self.fc2(x)


class Trainer:
    def __init__(self, model, args):
        self.model = model
        self.args = args
        self.optimizer = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
        self.scheduler = torch.optim.lr_scheduler.StepLR(self.optimizer, step_size=3, gamma=0.3)

    def train_epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = F.cross_entropy(self.model(x), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(y)
        return total / len(loader.dataset)

    @torch.no_grad()
    def evaluate(self, loader):
        self.model.eval()
        hits = 0
        for x, y in loader:
            hits += (self.model(x).argmax(1) == y).sum().item()
        return hits / len(loader.dataset)

    def fit(self, train_loader, test_loader):
        for epoch in range(self.args.epochs):
            loss = self.train_epoch(train_loader)
            self.scheduler.step()
            print(f"[{epoch + 1:02d}] loss={loss:.4f} acc={self.evaluate(test_loader):.4f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--batch-size", type=int, default=48)
    parser.add_argument("--lr", type=float, default=0.03)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    torch.manual_seed(args.seed)

    images, labels = load_digits(return_X_y=True)
    images = images.reshape(-1, 8, 8)
    x_train, x_test, y_train, y_test = train_test_split(images, labels, test_size=0.2, random_state=args.seed)
    train_loader = DataLoader(Digits(x_train, y_train), batch_size=args.batch_size, shuffle=True)
    test_loader = DataLoader(Digits(x_test, y_test), batch_size=180)

    model = ConvNet()
    Trainer(model, args).fit(train_loader, test_loader)


if __name__ == "__main__":
    main()
