"""The schedule moves on at the start of each epoch, before the optimizer has used the first learning rate."""

import torch
from sklearn.datasets import load_iris
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    iris = load_iris()
    x = torch.tensor(iris.data, dtype=torch.float32)
    x = (x - x.mean(0)) / x.std(0)
    loader = DataLoader(TensorDataset(x, torch.tensor(iris.target)), batch_size=15, shuffle=True)
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    lr_scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.8)
    for epoch in range(10):
        lr_scheduler.step()  # <- fault
        for features, labels in loader:
            loss = nn.functional.cross_entropy(model(features), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    main()
