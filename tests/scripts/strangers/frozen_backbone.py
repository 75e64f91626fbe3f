"""Pretrain a backbone on digits 0-4, save it, load it in a new model, freeze it and train a new head on digits 5-9."""

import os
import tempfile

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def backbone():
    return nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(),
    )  # fmt: skip


class Classifier(nn.Module):
    def __init__(self, features, n_classes):
        super().__init__()
        self.features = features
        self.fc = nn.Linear(128, n_classes)

    def forward(self, x):
        return self.fc(self.features(x))


def loader_for(digits, train):
    bunch = load_digits()
    keep = [i for i, t in enumerate(bunch.target) if t in digits and (i < 1400) == train]
    x = torch.tensor(bunch.images[keep], dtype=torch.float32).unsqueeze(1) / 16
    y = torch.tensor(bunch.target[keep]) - min(digits)
    return DataLoader(TensorDataset(x, y), batch_size=64, shuffle=train)


def fit(model, loader, optimizer, epochs):
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    pretrained = Classifier(backbone(), 5)
    print("pretraining", fit(pretrained, loader_for(range(5), True), torch.optim.Adam(pretrained.parameters(), 2e-3), 3))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "backbone.pt")
        torch.save(pretrained.features.state_dict(), path)
        features = backbone()
        features.load_state_dict(torch.load(path, weights_only=True))

    # Transfer: the backbone stays as it is, in eval mode so that its running statistics stay too.
    for p in features.parameters():
        p.requires_grad = False
    model = Classifier(features, 5)
    model.train()
    model.features.eval()
    optimizer = torch.optim.Adam(model.fc.parameters(), lr=1e-2)
    print("fine-tuning", fit(model, loader_for(range(5, 10), True), optimizer, 4))

    model.eval()
    hits = total = 0
    with torch.no_grad():
        for x, y in loader_for(range(5, 10), False):
            hits += (model(x).argmax(1) == y).sum().item()
            total += len(y)
    print("accuracy", hits / total)


if __name__ == "__main__":
    main()
