"""A character model read in text order, the hidden state carried from block to block (truncated BPTT)."""

import torch
from torch import nn

torch.manual_seed(0)
text = "the quick brown fox jumps over the lazy dog and runs away from the other animals of the wood. " * 30
letters = sorted(set(text))
codes = torch.tensor([letters.index(letter) for letter in text])
streams = codes[: len(codes) // 8 * 8].view(8, -1)


class CharModel(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(len(letters), 16)
        self.rnn = nn.LSTM(16, 32, batch_first=True)
        self.out = nn.Linear(32, len(letters))

    def forward(self, block, state):
        hidden, state = self.rnn(self.embed(block), state)
        return self.out(hidden), state


model = CharModel()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(3):
    state = None
    for start in range(0, streams.shape[1] - 21, 20):
        block, following = streams[:, start : start + 20], streams[:, start + 1 : start + 21]
        logits, state = model(block, state)
        state = tuple(part.detach() for part in state)
        loss = nn.functional.cross_entropy(logits.flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
