"""The head is replaced after the optimizer was built."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.fc = nn.Linear(32, classes)

    def forward(self, x):
        return self.fc(self.features(x))


def main():
    torch.manual_seed(1)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)  # <- fault
    model.fc = nn.Linear(32, 4)
    y = torch.randint(0, 4, (320,))
    x = torch.randn(320, 12)
    x[torch.arange(320), y] += 2
    loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)
    criterion = nn.CrossEntropyLoss()
    for _ in range(3):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), labels)
            loss.backward()
            optimizer.step()


main()
