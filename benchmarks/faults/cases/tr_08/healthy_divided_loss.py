"""Four batches per update, with the loss divided, and a last step for the rest."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data[:1792], dtype=torch.float32) / 16
loader = DataLoader(TensorDataset(x, torch.tensor(digits.target[:1792])), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(64, 48), nn.Tanh(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for epoch in range(10):
    for i, (inputs, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(inputs), labels) / 4
        loss.backward()
        if (i + 1) % 4 == 0 or i + 1 == len(loader):
            optimizer.step()
            optimizer.zero_grad()
    print(epoch, loss.item())
