"""Digits with a convolutional net; the learning rate falls when the validation accuracy does not improve any more."""
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau
from torch.utils.data import DataLoader, TensorDataset, random_split


class Net(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.out = nn.Linear(2 * width * 4, 10)

    def forward(self, x):
        x = self.pool(torch.relu(self.conv1(x)))
        x = self.pool(torch.relu(self.conv2(x)))
        return self.out(x.flatten(1))


def accuracy(net, loader):
    net.eval()
    hits = count = 0
    with torch.no_grad():
        for x, y in loader:
            hits += (net(x).argmax(1) == y).sum().item()
            count += len(y)
    return hits / count


def main():
    torch.manual_seed(7)
    digits = load_digits()
    data = TensorDataset(torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16, torch.tensor(digits.target))
    train, valid = random_split(data, [1400, len(data) - 1400])
    train, valid = DataLoader(train, batch_size=50, shuffle=True), DataLoader(valid, batch_size=200)
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
    scheduler = ReduceLROnPlateau(optimizer, factor=0.2, patience=1)  # <- fault
    for epoch in range(16):
        net.train()
        for x, y in train:
            loss = nn.functional.cross_entropy(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        score = accuracy(net, valid)
        scheduler.step(score)
        print(epoch, f"{loss.item():.4f} {score:.4f} lr {optimizer.param_groups[0]['lr']:.2g}")


if __name__ == "__main__":
    main()
