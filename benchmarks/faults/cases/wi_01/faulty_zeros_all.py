"""Every parameter of an MLP is set to zero by an init function."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(0)


def init(module):
    if isinstance(module, nn.Linear):
        nn.init.zeros_(module.weight)  # <- fault
        nn.init.zeros_(module.bias)


digits = load_digits()
x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
y = torch.tensor(digits.target)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 10))
model.apply(init)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(40):
    pick = torch.randint(0, len(x), (64,))
    loss = nn.functional.cross_entropy(model(x[pick]), y[pick])
    opt.zero_grad()
    loss.backward()
    opt.step()
