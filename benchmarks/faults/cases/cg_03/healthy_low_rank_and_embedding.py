"""A low-rank layer, an embedding that is returned beside the scores, and a head that only another task needs."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.squeeze = nn.Linear(64, 12, bias=False)
        self.expand = nn.Linear(12, 64)
        self.embed = nn.Linear(64, 24)
        self.classify = nn.Linear(24, 10)
        self.reconstruct = nn.Linear(24, 64)

    def forward(self, x):
        x = torch.relu(self.expand(self.squeeze(x)))
        code = self.embed(x)
        return self.classify(code), code

    def decode(self, code):
        return self.reconstruct(code)


torch.manual_seed(3)
digits = load_digits()
data = TensorDataset(torch.tensor(digits.data / 16, dtype=torch.float32), torch.tensor(digits.target))
net = Net()
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        scores, code = net(x)
        optimizer.zero_grad()
        nn.functional.cross_entropy(scores, y).backward()
        optimizer.step()
