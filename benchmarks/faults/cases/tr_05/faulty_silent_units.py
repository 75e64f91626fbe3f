"""Breast cancer with biases set by hand."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn, optim


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(30, 64)
        self.fc2 = nn.Linear(64, 32)
        self.out = nn.Linear(32, 2)
        nn.init.constant_(self.fc1.bias, 0.1)
        nn.init.constant_(self.fc2.bias, -8.0)  # <- fault

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.out(x)


torch.manual_seed(1)
data = load_breast_cancer()
x = torch.tensor(StandardScaler().fit_transform(data.data), dtype=torch.float32)
y = torch.tensor(data.target)
model = Classifier()
optimizer = optim.SGD(model.parameters(), lr=0.05)
for epoch in range(12):
    order = torch.randperm(len(x))
    for start in range(0, len(x), 32):
        rows = order[start : start + 32]
        loss = F.cross_entropy(model(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), (model(x).argmax(1) == y).float().mean().item())
