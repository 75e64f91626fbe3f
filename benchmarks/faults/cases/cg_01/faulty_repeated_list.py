"""A residual MLP for the digits, four blocks deep."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


class ResidualNet(nn.Module):
    def __init__(self, width=48, depth=4):
        super().__init__()
        self.stem = nn.Linear(64, width)
        block = Block(width)
        self.blocks = nn.ModuleList([block] * depth)  # <- fault
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data / 16.0, dtype=torch.float32)
y = torch.tensor(digits.target)
loader = DataLoader(TensorDataset(x, y), batch_size=64, shuffle=True)
model = ResidualNet()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
for epoch in range(3):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
