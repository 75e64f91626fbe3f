"""Breast cancer data, a perceptron with dropout behind each hidden layer."""

import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
table = load_breast_cancer()
x = torch.tensor(StandardScaler().fit_transform(table.data), dtype=torch.float32)
y = torch.tensor(table.target, dtype=torch.float32)


class Perceptron(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(30, 64)
        self.fc2 = nn.Linear(64, 32)
        self.dropout = nn.Dropout(0.9)  # <- fault
        self.out = nn.Linear(32, 1)

    def forward(self, x):
        x = self.dropout(torch.relu(self.fc1(x)))
        x = self.dropout(torch.relu(self.fc2(x)))
        return self.out(x).squeeze(1)


model = Perceptron()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(6):
    for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        criterion(model(inputs), labels).backward()
        optimizer.step()
