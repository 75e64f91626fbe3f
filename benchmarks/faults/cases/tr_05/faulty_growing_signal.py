"""Wine cultivars with a deep network that was initialised for wide layers."""

import torch
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn


def block(width):
    layer = nn.Linear(width, width)
    nn.init.xavier_normal_(layer.weight, gain=4.0)  # <- fault
    return nn.Sequential(layer, nn.ReLU())


torch.manual_seed(4)
features, cultivar = load_wine(return_X_y=True)
x, y = torch.tensor(scale(features), dtype=torch.float32), torch.tensor(cultivar)
model = nn.Sequential(nn.Linear(13, 40), nn.ReLU(), *[block(40) for _ in range(9)], nn.Linear(40, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
loss_fn = nn.CrossEntropyLoss()
for epoch in range(20):
    for rows in torch.randperm(len(x)).split(20):
        optimizer.zero_grad()
        loss = loss_fn(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
