"""A small transformer on made-up sequences with linear warm-up and cosine decay."""

import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(8)
tokens = torch.randint(0, 12, (1500, 16))
labels = ((tokens == 3).sum(1) > (tokens == 5).sum(1)).long()
loader = DataLoader(TensorDataset(tokens, labels), batch_size=50, shuffle=True)


class Encoder(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(12, width)
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.head = nn.Linear(width, 2)

    def forward(self, x):
        return self.head(self.encoder(self.embed(x)).mean(1))


model = Encoder()
optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3)
total = 10 * len(loader)


def factor(step):
    return (step + 1) / 60 if step < 60 else 0.5 * (1 + math.cos(math.pi * (step - 60) / (total - 60)))


scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, factor)
for epoch in range(10):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        scheduler.step()
    print(epoch, round(loss.item(), 4))
