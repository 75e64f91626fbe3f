"""Reviews as word ids, judged by the last state of an LSTM."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(9)
torch.manual_seed(9)
count, longest = 800, 30
tokens = np.zeros((count, longest), dtype=np.int64)
labels = rng.integers(0, 2, count)
for row in range(count):
    length = rng.integers(4, longest + 1)
    tokens[row, :length] = rng.integers(3, 60, length)
    tokens[row, rng.integers(0, length)] = 1 + labels[row]
data = TensorDataset(torch.from_numpy(tokens), torch.from_numpy(labels))
train, valid = torch.utils.data.random_split(data, [640, 160])


class Reviews(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(60, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 32, batch_first=True)
        self.classify = nn.Linear(32, 2)

    def forward(self, ids):
        output, _ = self.lstm(self.words(ids))
        return self.classify(output[:, -1, :])  # <- fault


model = Reviews()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    model.train()
    for ids, target in DataLoader(train, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(ids), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(i).argmax(1) == t).sum().item() for i, t in DataLoader(valid, batch_size=80)) / 160)
