"""Sensor readings, batches cut by hand; the logger writes -999 when a sensor does not answer."""

import numpy as np
import torch
import torch.nn.functional as F

torch.manual_seed(11)
rng = np.random.default_rng(11)
readings = rng.normal([20.0, 55.0, 1.2, 3.4, 0.8, 12.0], [4.0, 12.0, 0.3, 1.1, 0.2, 5.0], size=(1200, 6))
power = readings @ np.array([0.8, -0.2, 3.0, 1.5, -4.0, 0.4]) + rng.normal(0, 0.5, 1200)
for column in (1, 4):
    readings[rng.random(1200) < 0.06, column] = -999.0

mean, std = readings[:1000].mean(0), readings[:1000].std(0)
inputs = torch.from_numpy((readings - mean) / std).float()  # <- fault
targets = torch.from_numpy((power - power[:1000].mean()) / power[:1000].std()).float()


class Regressor(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Linear(6, 48)
        self.second = torch.nn.Linear(48, 48)
        self.last = torch.nn.Linear(48, 1)

    def forward(self, values):
        hidden = torch.tanh(self.first(values))
        return self.last(torch.tanh(self.second(hidden))).squeeze(-1)


model = Regressor()
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(12):
    order = torch.randperm(1000)
    for start in range(0, 1000, 50):
        chosen = order[start : start + 50]
        loss = F.mse_loss(model(inputs[chosen]), targets[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), F.mse_loss(model(inputs[1000:]), targets[1000:]).item())
