"""Even or odd first, then all ten digits: the body is kept for the second task, with a new last layer and a smaller rate."""
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn


def fit(net, optimizer, x, y, x_held, y_held, epochs):
    best, kept = 0.0, copy.deepcopy(net.state_dict())
    for epoch in range(epochs):
        for rows in torch.randperm(len(x)).split(40):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x[rows]), y[rows])
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            accuracy = (net(x_held).argmax(1) == y_held).float().mean().item()
        if accuracy > best:
            best, kept = accuracy, copy.deepcopy(net.state_dict())
        print(f"epoch {epoch + 1}: loss {loss.item():.4f}, held out {accuracy:.4f}")
    net.load_state_dict(kept)
    return best


class Reader(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 48), nn.ReLU())
        self.last = nn.Linear(48, classes)

    def forward(self, x):
        return self.last(self.body(x))


torch.manual_seed(9)
digits = load_digits()
x, y = torch.tensor(digits.data, dtype=torch.float32) / 16, torch.tensor(digits.target)
order = torch.randperm(len(x))
fitted, held = order[:1400], order[1400:]

net = Reader(2)
fit(net, torch.optim.Adam(net.parameters(), lr=2e-3), x[fitted], y[fitted] % 2, x[held], y[held] % 2, 6)

optimizer = torch.optim.Adam(net.parameters(), lr=5e-4)  # <- fault
net.last = nn.Linear(48, 10)
print("best", fit(net, optimizer, x[fitted], y[fitted], x[held], y[held], 10))
