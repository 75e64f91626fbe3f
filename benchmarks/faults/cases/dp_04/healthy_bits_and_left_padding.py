"""Two models: bit strings of one length, where zeros are content, and numbers padded on the left for a GRU."""

import torch
from torch import nn

torch.manual_seed(23)
bits = torch.randint(0, 2, (600, 12))
majority = (bits.sum(1) > 6).long()
numbers = torch.randint(1, 20, (600, 16))
lengths = torch.randint(3, 17, (600,))
numbers[torch.arange(16).unsqueeze(0) < (16 - lengths).unsqueeze(1)] = 0
even = numbers[:, -1] % 2


class Reader(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, 12)
        self.gru = nn.GRU(12, 24, batch_first=True)
        self.out = nn.Linear(24, 2)

    def forward(self, tokens):
        _, state = self.gru(self.embed(tokens))
        return self.out(state[-1])


for tokens, target, vocabulary in ((bits, majority, 2), (numbers, even, 20)):
    model = Reader(vocabulary)
    optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
    for epoch in range(4):
        for rows in torch.randperm(600).split(50):
            loss = nn.functional.cross_entropy(model(tokens[rows]), target[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())
