"""One transformer layer applied six times (shared across depth by design), and a moving average of the whole model."""

import copy

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(21)
digits = load_digits()
rows = torch.tensor(digits.images, dtype=torch.float32) / 16
data = TensorDataset(rows, torch.tensor(digits.target))


class Looped(nn.Module):
    def __init__(self, d=24, depth=6):
        super().__init__()
        self.inputs = nn.Linear(8, d)
        self.place = nn.Parameter(torch.randn(8, d) * 0.02)
        self.layer = nn.TransformerEncoderLayer(d, 4, 48, dropout=0.0, batch_first=True)
        self.depth = depth
        self.outputs = nn.Linear(d, 10)

    def forward(self, x):
        x = self.inputs(x) + self.place
        for _ in range(self.depth):
            x = self.layer(x)
        return self.outputs(x.mean(1))


model = Looped()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
for epoch in range(2):
    model.train()
    for x, y in DataLoader(data, batch_size=96, shuffle=True):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(average.parameters(), model.parameters()):
                slow.lerp_(fast, 0.05)
    average.eval()
    with torch.no_grad():
        right = (average(rows[:500]).argmax(1) == torch.tensor(digits.target[:500])).float().mean()
    print(epoch, float(right))
