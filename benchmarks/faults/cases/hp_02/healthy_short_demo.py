"""A quick look at whether everything runs: thirty steps."""

import torch
from sklearn.datasets import load_digits
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(9)
x, y = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
optimizer = optim.SGD(model.parameters(), lr=0.05)
for step, (inputs, labels) in enumerate(loader):
    loss = nn.functional.cross_entropy(model(inputs), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 29:
        break
print(loss.item())
