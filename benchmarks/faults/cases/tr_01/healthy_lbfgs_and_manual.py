"""LBFGS with a closure, then a loop that clears gradients by hand."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.linspace(-2, 2, 120).unsqueeze(1)
y = x.sin()
model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
lbfgs = torch.optim.LBFGS(model.parameters(), lr=0.5, max_iter=5)


def closure():
    lbfgs.zero_grad()
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    return loss


for _ in range(6):
    lbfgs.step(closure)

sgd = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(40):
    loss = nn.functional.mse_loss(model(x), y)
    loss.backward()
    sgd.step()
    for parameter in model.parameters():
        parameter.grad = None
print(loss.item())
