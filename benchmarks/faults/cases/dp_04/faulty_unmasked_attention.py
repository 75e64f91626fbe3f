"""A transformer encoder sorts short messages into three kinds."""

import torch
from torch import nn

torch.manual_seed(6)
MESSAGES, LONGEST = 600, 24
lengths = torch.randint(5, LONGEST + 1, (MESSAGES,))
kinds = torch.randint(0, 3, (MESSAGES,))
ids = torch.randint(4, 80, (MESSAGES, LONGEST))
for row in range(MESSAGES):
    ids[row, torch.randint(0, int(lengths[row]), (2,))] = 1 + kinds[row]
    ids[row, lengths[row] :] = 0


class Sorter(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.embed = nn.Embedding(80, width)
        self.position = nn.Parameter(0.02 * torch.randn(LONGEST, width))
        layer = nn.TransformerEncoderLayer(width, 4, 64, dropout=0.0, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(width, 3)

    def forward(self, tokens):
        hidden = self.embed(tokens) + self.position
        hidden = self.encoder(hidden)  # <- fault
        return self.head(hidden[:, 0])


model = Sorter()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(480).split(40):
        loss = nn.functional.cross_entropy(model(ids[rows]), kinds[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, loss.item(), (model(ids[480:]).argmax(1) == kinds[480:]).float().mean().item())
