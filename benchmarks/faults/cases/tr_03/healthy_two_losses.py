"""Two losses of one network propagated one after the other, and an exponential decay per step that ends at a tenth."""

import torch
from torch import nn

STEPS = 200
torch.manual_seed(0)
trunk = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
left, right = nn.Linear(32, 1), nn.Linear(32, 4)
parameters = [*trunk.parameters(), *left.parameters(), *right.parameters()]
optimizer = torch.optim.Adam(parameters, lr=3e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.1 ** (1 / STEPS))
x = torch.randn(500, 10)
value, kind = x[:, :2].sum(1), x[:, 2:6].argmax(1)
for step in range(STEPS):
    rows = torch.randint(0, 500, (40,))
    h = trunk(x[rows])
    regression = nn.functional.mse_loss(left(h).squeeze(1), value[rows])
    classification = nn.functional.cross_entropy(right(h), kind[rows])
    optimizer.zero_grad()
    regression.backward(retain_graph=True)
    classification.backward()
    optimizer.step()
    scheduler.step()
print(regression.item(), classification.item())
