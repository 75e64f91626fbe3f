"""A table whose test part comes from another hospital: older patients, another mix of cases, same scaler."""

import numpy as np
import torch
from sklearn.preprocessing import StandardScaler
from torch import nn

rng = np.random.default_rng(31)
torch.manual_seed(31)


def patients(count, share, age):
    ill = rng.random(count) < share
    rows = np.column_stack([
        rng.normal(age, 11, count),
        rng.normal(120, 15, count) + 12 * ill,
        rng.gamma(2.0, 1.5, count) + 1.4 * ill,
        rng.normal(5.0, 0.8, count) + 0.6 * ill,
        rng.integers(0, 2, count),
    ])  # fmt: skip
    return rows, ill.astype(np.int64)


rows, ill = patients(1200, 0.3, 48)
elsewhere, ill_elsewhere = patients(300, 0.7, 61)
scaler = StandardScaler().fit(rows)
x, y = torch.tensor(scaler.transform(rows)).float(), torch.from_numpy(ill)
x_test, y_test = torch.tensor(scaler.transform(elsewhere)).float(), torch.from_numpy(ill_elsewhere)
model = nn.Sequential(nn.Linear(5, 20), nn.ReLU(), nn.Linear(20, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(8):
    model.train()
    for index in torch.randperm(1200).split(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[index]), y[index])
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, loss.item(), (model(x_test).argmax(1) == y_test).float().mean().item())
