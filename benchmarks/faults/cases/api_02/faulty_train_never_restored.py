"""validate() switches to eval mode; train mode is set once, before the first epoch."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(20, 48)
        self.drop = nn.Dropout(0.5)
        self.fc2 = nn.Linear(48, 4)

    def forward(self, x):
        return self.fc2(self.drop(F.relu(self.fc1(x))))


@torch.no_grad()
def validate(net, loader):
    net.eval()  # <- fault
    right = sum((net(x).argmax(1) == y).sum().item() for x, y in loader)
    return right / len(loader.dataset)


def main() -> None:
    torch.manual_seed(0)
    x = torch.randn(800, 20)
    y = x[:, :4].argmax(1)
    train = DataLoader(TensorDataset(x[:600], y[:600]), batch_size=50, shuffle=True)
    val = DataLoader(TensorDataset(x[600:], y[600:]), batch_size=50)
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    net.train()
    for epoch in range(4):
        for xb, yb in train:
            opt.zero_grad()
            loss = F.cross_entropy(net(xb), yb)
            loss.backward()
            opt.step()
        print(epoch, validate(net, val))


if __name__ == "__main__":
    main()
