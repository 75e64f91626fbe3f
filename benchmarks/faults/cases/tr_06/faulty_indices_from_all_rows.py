"""Diabetes progression from tensors, without loaders; the rows to validate on are drawn at random."""

import torch
from sklearn.datasets import load_diabetes

torch.manual_seed(5)
data = load_diabetes()
x = torch.tensor(data.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(data.target, dtype=torch.float32)
y = (y - y.mean()) / y.std()

n = len(x)
train_rows = torch.randperm(n)[:350]
held_rows = torch.randperm(n)[:92]
x_held, y_held = x[held_rows], y[held_rows]  # <- fault

regressor = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.Tanh(), torch.nn.Linear(32, 1))
optimiser = torch.optim.Adam(regressor.parameters(), lr=5e-3)

for epoch in range(25):
    shuffled = train_rows[torch.randperm(len(train_rows))]
    total = 0.0
    for start in range(0, len(shuffled), 35):
        rows = shuffled[start : start + 35]
        prediction = regressor(x[rows]).squeeze(1)
        loss = torch.nn.functional.mse_loss(prediction, y[rows])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        total += loss.item() * len(rows)
    with torch.no_grad():
        error = torch.nn.functional.mse_loss(regressor(x_held).squeeze(1), y_held)
    if epoch % 5 == 4:
        print(f"{epoch + 1:3d} train {total / 350:.3f} held out {error.item():.3f}")
