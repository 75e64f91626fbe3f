"""Word vectors of which each batch touches a few, with a recurrent network and clipped gradients."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
words = torch.randint(1, 800, (900, 12))
label = ((words % 7 == 0).sum(1) > 1).float()
loader = DataLoader(TensorDataset(words, label), batch_size=30, shuffle=True)


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(800, 24)
        self.gru = nn.GRU(24, 32, batch_first=True)
        self.score = nn.Linear(32, 1)

    def forward(self, tokens):
        _, last = self.gru(self.embedding(tokens))
        return self.score(last[-1]).squeeze(-1)


reader = Reader()
optimizer = torch.optim.Adam(reader.parameters(), lr=5e-3)
criterion = nn.BCEWithLogitsLoss()
for epoch in range(8):
    for tokens, target in loader:
        optimizer.zero_grad()
        loss = criterion(reader(tokens), target)
        loss.backward()
        nn.utils.clip_grad_norm_(reader.parameters(), 0.5)
        optimizer.step()
    print(epoch, round(loss.item(), 4))
