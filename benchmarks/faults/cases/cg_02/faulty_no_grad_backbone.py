"""A freshly built backbone is called under no_grad inside of forward."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 4, 3, padding=1)
        self.conv2 = nn.Conv2d(4, 8, 3, padding=1)

    def forward(self, x):
        x = torch.relu(self.conv1(x))
        return torch.relu(self.conv2(x)).mean((2, 3))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = Backbone()
        self.fc = nn.Linear(8, 3)

    def forward(self, x):
        with torch.no_grad():
            pooled = self.backbone(x)  # <- fault
        return self.fc(pooled)


if __name__ == "__main__":
    torch.manual_seed(1)
    labels = torch.randint(0, 3, (200,))
    images = torch.randn(200, 1, 8, 8) + labels[:, None, None, None]
    loader = DataLoader(TensorDataset(images, labels), batch_size=20, shuffle=True)
    net = Classifier()
    sgd = torch.optim.SGD(net.parameters(), lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for _ in range(2):
        for batch, target in loader:
            sgd.zero_grad()
            criterion(net(batch), target).backward()
            sgd.step()
