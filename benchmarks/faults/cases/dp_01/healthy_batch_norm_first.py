"""A table of raw measurements into a network that standardises them itself."""

import torch
from sklearn.datasets import load_breast_cancer
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(3)
x, y = load_breast_cancer(return_X_y=True)
data = TensorDataset(torch.tensor(x, dtype=torch.float32), torch.tensor(y))
train, test = random_split(data, [455, 114])
train_loader = DataLoader(train, batch_size=35, shuffle=True)
test_loader = DataLoader(test, batch_size=114)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.BatchNorm1d(30)
        self.hidden = nn.Linear(30, 24)
        self.out = nn.Linear(24, 2)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(self.scale(x))))


model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(10):
    model.train()
    for features, target in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(features), target)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for features, target in test_loader:
            print(epoch, loss.item(), (model(features).argmax(1) == target).float().mean().item())
