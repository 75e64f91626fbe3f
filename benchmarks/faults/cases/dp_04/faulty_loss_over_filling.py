"""A small language model over sentences of different lengths."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(0)
PAD, VOCABULARY = 0, 40


def sentence():
    length = int(torch.randint(6, 22, ()))
    words = [int(torch.randint(1, VOCABULARY, ()))]
    while len(words) < length:
        words.append((words[-1] * 3 + int(torch.randint(0, 3, ()))) % (VOCABULARY - 1) + 1)
    return torch.tensor(words)


def collate(sentences):
    padded = pad_sequence(sentences, batch_first=True, padding_value=PAD)
    return padded[:, :-1], padded[:, 1:]


class LanguageModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 24, padding_idx=PAD)
        self.rnn = nn.GRU(24, 48, batch_first=True)
        self.out = nn.Linear(48, VOCABULARY)

    def forward(self, tokens):
        states, _ = self.rnn(self.embedding(tokens))
        return self.out(states)


loader = DataLoader([sentence() for _ in range(600)], batch_size=30, shuffle=True, collate_fn=collate)
model = LanguageModel()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(3):
    for inputs, targets in loader:
        scores = model(inputs)
        loss = criterion(scores.reshape(-1, VOCABULARY), targets.reshape(-1))  # <- fault
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
