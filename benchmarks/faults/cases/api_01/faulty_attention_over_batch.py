"""Attention pooling over the rows of a digit."""

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pooling(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.encode = nn.Linear(8, width)
        self.score = nn.Linear(width, 1)
        self.classify = nn.Linear(width, 10)

    def forward(self, rows):
        states = torch.tanh(self.encode(rows))
        weights = F.softmax(self.score(states), dim=0)  # <- fault
        return self.classify((weights * states).sum(1))


torch.manual_seed(3)
digits = load_digits()
data = TensorDataset(torch.tensor(digits.images / 16, dtype=torch.float32), torch.tensor(digits.target))
model = Pooling()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    for rows, labels in DataLoader(data, batch_size=48, shuffle=True):
        loss = F.cross_entropy(model(rows), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
