"""Keyword spotting on streamed feature records, grouped per recording campaign."""
import random

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset

KEYWORDS = ["stop", "go", "left", "right", "up", "down"]


def campaign(word, n, seed):
    g = np.random.default_rng(seed * 50 + word)
    proto = np.random.default_rng(word).normal(0, 1, (12, 10))
    for _ in range(n):
        shift = g.integers(-1, 2)
        yield np.roll(proto, shift, axis=0) + g.normal(0, 1.3, (12, 10)), word


class RecordStream(IterableDataset):
    def __init__(self, per_word, seed, buffer_size=16):
        self.per_word, self.seed, self.buffer_size = per_word, seed, buffer_size

    def records(self):
        for word in range(len(KEYWORDS)):
            yield from campaign(word, self.per_word, self.seed)

    def __iter__(self):
        buf = []
        for rec in self.records():
            if len(buf) < self.buffer_size:
                buf.append(rec)
                continue
            j = random.randrange(self.buffer_size)
            yield self.convert(buf[j])
            buf[j] = rec
        random.shuffle(buf)
        for rec in buf:
            yield self.convert(rec)

    @staticmethod
    def convert(rec):
        return torch.tensor(rec[0], dtype=torch.float32), rec[1]


class KeywordGRU(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(10, 32, batch_first=True)
        self.fc = nn.Linear(32, len(KEYWORDS))

    def forward(self, x):
        return self.fc(self.rnn(x)[0].mean(1))


def main():
    random.seed(12)
    torch.manual_seed(12)
    train = DataLoader(RecordStream(200, seed=1), batch_size=20)  # <- fault
    test = DataLoader(RecordStream(50, seed=2, buffer_size=1), batch_size=60)
    model = KeywordGRU()
    optim = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(3):
        model.train()
        losses = []
        for x, y in train:
            loss = nn.functional.cross_entropy(model(x), y)
            optim.zero_grad()
            loss.backward()
            optim.step()
            losses.append(loss.item())
        model.eval()
        hit = n = 0
        with torch.no_grad():
            for x, y in test:
                hit += (model(x).argmax(1) == y).sum().item()
                n += len(y)
        print(f"epoch {epoch} loss {np.mean(losses):.3f} test acc {hit / n:.3f}")


if __name__ == "__main__":
    main()
