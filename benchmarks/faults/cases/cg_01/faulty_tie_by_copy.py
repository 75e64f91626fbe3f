"""A character language model over a made-up text; the output layer takes over the embedding."""

import random

import torch
from torch import nn

random.seed(2)
torch.manual_seed(2)
words = ["sun", "moon", "star", "rain", "wind", "snow", "leaf", "root"]
text = " ".join(random.choice(words) for _ in range(2500))
vocabulary = sorted(set(text))
codes = torch.tensor([vocabulary.index(c) for c in text])


class CharModel(nn.Module):
    def __init__(self, size, width=32):
        super().__init__()
        self.embedding = nn.Embedding(size, width)
        self.rnn = nn.GRU(width, width, batch_first=True)
        self.decoder = nn.Linear(width, size, bias=False)
        self.decoder.weight.data.copy_(self.embedding.weight.data)  # <- fault

    def forward(self, x):
        h, _ = self.rnn(self.embedding(x))
        return self.decoder(h)


model = CharModel(len(vocabulary))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
length, batch = 24, 32
for step in range(120):
    starts = torch.randint(0, len(codes) - length - 1, (batch,))
    x = torch.stack([codes[s : s + length] for s in starts])
    y = torch.stack([codes[s + 1 : s + length + 1] for s in starts])
    loss = nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
