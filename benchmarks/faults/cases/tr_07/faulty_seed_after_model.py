import torch
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(13, 32), nn.GELU(), nn.Linear(32, 3))

    def forward(self, x):
        return self.layers(x)


def main():
    net = Net()
    x, y = load_wine(return_X_y=True)
    data = TensorDataset(torch.tensor(scale(x)).float(), torch.tensor(y))
    torch.manual_seed(7)  # <- fault
    loader = DataLoader(data, batch_size=16, shuffle=True)
    optimizer = torch.optim.AdamW(net.parameters(), lr=5e-3)
    for epoch in range(8):
        total = 0.0
        for xb, yb in loader:
            loss = nn.functional.cross_entropy(net(xb), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(yb)
        print(epoch, total / len(data))


if __name__ == "__main__":
    main()
