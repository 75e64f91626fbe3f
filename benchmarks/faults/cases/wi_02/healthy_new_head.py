"""A pretrained body with a new head for other classes: the old head stays behind, the new one is initialised."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(3)
digits = load_digits()
x = torch.tensor(digits.data / 16, dtype=torch.float32)
y = torch.tensor(digits.target)


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        self.head = nn.Linear(32, classes)

    def forward(self, x):
        return self.head(self.body(x))


def train(model, inputs, targets, epochs, lr):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(epochs):
        for index in torch.randperm(len(inputs)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs[index]), targets[index]).backward()
            optimizer.step()


first = Net(10)
train(first, x, y, 3, 2e-3)
state = {name: value for name, value in first.state_dict().items() if not name.startswith("head.")}
second = Net(2)
result = second.load_state_dict(state, strict=False)
print("new:", result.missing_keys)
nn.init.xavier_uniform_(second.head.weight)
train(second, x, y % 2, 3, 1e-3)
