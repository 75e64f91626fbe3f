"""An LSTM that tells whether a sequence holds more ones than zeros, over sequences of different lengths."""

import random

import torch
from probe import report, seed_everything
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader


def collate(samples):
    sequences, labels = zip(*samples)
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    return pad_sequence(sequences, batch_first=True), lengths, torch.stack(labels)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(3, 8, padding_idx=0)
        self.lstm = nn.LSTM(8, 16, num_layers=2, batch_first=True, dropout=0.1)
        self.out = nn.Linear(16, 1)

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (hidden, _) = self.lstm(packed)
        return self.out(hidden[-1]).squeeze(1)


seed_everything(3)
samples = []
for _ in range(480):
    sequence = torch.randint(1, 3, (random.randint(5, 15),))
    samples.append((sequence, ((sequence == 2).float().mean() > 0.5).float()))

model = Tagger()
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
loader = DataLoader(samples, batch_size=32, shuffle=True, collate_fn=collate)

model.train()
for _ in range(4):
    for tokens, lengths, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(tokens, lengths), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        print("loss", repr(loss.item()))

report(model, optimizer)
