"""Unusual but sound settings: a slow BatchNorm, half of the units dropped, a small eps, decoupled decay, label smoothing."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(5)
digits = load_digits()
data = TensorDataset(torch.tensor(digits.images[:, None] / 16, dtype=torch.float32), torch.tensor(digits.target))
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1),
    nn.BatchNorm2d(16, momentum=0.01, eps=1e-3),
    nn.LeakyReLU(0.2),
    nn.Conv2d(16, 32, 3, stride=2, padding=1),
    nn.GroupNorm(4, 32, eps=1e-6),
    nn.ELU(),
    nn.Flatten(),
    nn.Dropout(0.5),
    nn.Linear(32 * 16, 48),
    nn.LayerNorm(48, eps=1e-12),
    nn.GELU(approximate="tanh"),
    nn.Linear(48, 10),
)
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, betas=(0.9, 0.98), eps=1e-6, weight_decay=0.1)
for epoch in range(3):
    model.train()
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
