"""A tagger that reshapes (N, L, C) scores into (N, C, L) where a transpose was needed."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(8)
VOCAB, TAGS, LENGTH = 30, 5, 12


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, 16)
        self.rnn = nn.GRU(16, 32, batch_first=True)
        self.out = nn.Linear(32, TAGS)

    def forward(self, words):
        hidden, _ = self.rnn(self.embed(words))
        return self.out(hidden)


tagger = Tagger()
optimizer = torch.optim.Adam(tagger.parameters(), lr=3e-3)
for _ in range(25):
    words = torch.randint(0, VOCAB, (16, LENGTH))
    tags = words % TAGS
    scores = tagger(words)
    scores = scores.view(16, TAGS, LENGTH)  # <- fault
    loss = F.cross_entropy(scores, tags)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
