"""A small classifier of handwritten digits that is validated with dropout still on."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 12


class DigitsMLP(nn.Module):
    def __init__(self, hidden=64):
        super().__init__()
        self.features = nn.Sequential(
            nn.Linear(64, hidden),
            nn.ReLU(),
            nn.Dropout(0.2),
            nn.Linear(hidden, hidden),
            nn.ReLU(),
        )
        self.head = nn.Linear(hidden, 10)

    def forward(self, x):
        return self.head(self.features(x))


def load_data():
    images, labels = load_digits(return_X_y=True)
    images = torch.tensor(images / 16.0, dtype=torch.float32)
    labels = torch.tensor(labels)
    x_train, x_val, y_train, y_val = train_test_split(images, labels, test_size=0.2, random_state=0, stratify=labels)
    return TensorDataset(x_train, y_train), TensorDataset(x_val, y_val)


def accuracy(model, loader):
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
            total += len(y)
    return correct / total


def main():
    torch.manual_seed(0)
    train_set, val_set = load_data()
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=256)

    model = DigitsMLP()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

    for epoch in range(EPOCHS):
        model.train()
        total = 0.0
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        print(f"epoch {epoch + 1:2d}  loss {total / len(train_set):.4f}  val accuracy {accuracy(model, val_loader):.3f}")


if __name__ == "__main__":
    main()
