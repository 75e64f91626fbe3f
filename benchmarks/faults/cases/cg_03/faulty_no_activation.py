"""A multilayer perceptron for the digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(64, 128)
        self.fc2 = nn.Linear(128, 64)
        self.fc3 = nn.Linear(64, 10)
        self.drop = nn.Dropout(0.2)

    def forward(self, x):
        x = torch.relu(self.fc1(x))
        x = self.drop(self.fc2(x))  # <- fault
        return self.fc3(x)


torch.manual_seed(1)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x / 16, dtype=torch.float32), torch.tensor(y))
net = Perceptron()
optimizer = optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
for epoch in range(3):
    for inputs, labels in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(inputs), labels).backward()
        optimizer.step()
