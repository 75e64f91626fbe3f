"""A convolutional classifier of digits that was ported from another framework."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def conv_block(n_in, n_out):
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, 3, padding=1, bias=False),
        nn.BatchNorm2d(n_out, momentum=0.99, eps=1e-3),  # <- fault
        nn.ReLU(),
    )


torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.images[:, None] / 16, dtype=torch.float32)
y = torch.tensor(digits.target)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.25, random_state=0)
model = nn.Sequential(conv_block(1, 12), nn.MaxPool2d(2), conv_block(12, 24), nn.Flatten(), nn.Linear(24 * 16, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(3):
    model.train()
    for inputs, labels in DataLoader(TensorDataset(x_train, y_train), batch_size=32, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print((model(x_test).argmax(1) == y_test).float().mean().item())
