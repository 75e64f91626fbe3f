"""GRU language model over a toy grammar, truncated backpropagation through time."""
import random

import torch
from torch import nn

EPOCHS = 4
BPTT = 20
BATCH = 16

random.seed(1)
torch.manual_seed(1)

NOUNS = "cat dog bird fish farmer child teacher robot".split()
VERBS = "sees likes follows paints hears".split()
ADJECTIVES = "small green old happy quiet".split()


def sentence():
    subject = ["the"] + random.sample(ADJECTIVES, random.randint(0, 1)) + [random.choice(NOUNS)]
    thing = ["a"] + random.sample(ADJECTIVES, random.randint(0, 1)) + [random.choice(NOUNS)]
    return subject + [random.choice(VERBS)] + thing + ["."]


def corpus(sentences):
    return [word for _ in range(sentences) for word in sentence()]


train_words, valid_words = corpus(2400), corpus(300)
vocabulary = sorted(set(train_words))
index = {word: i for i, word in enumerate(vocabulary)}


def batchify(words, columns):
    ids = torch.tensor([index[word] for word in words])
    rows = len(ids) // columns
    return ids[: rows * columns].view(columns, rows).t().contiguous()


class LanguageModel(nn.Module):
    def __init__(self, vocab, width=48):
        super().__init__()
        self.embed = nn.Embedding(vocab, width)
        self.rnn = nn.GRU(width, width)
        self.drop = nn.Dropout(0.1)
        self.decode = nn.Linear(width, vocab)

    def forward(self, tokens, state):
        output, state = self.rnn(self.drop(self.embed(tokens)), state)
        return self.decode(self.drop(output)), state


def segments(data):
    for start in range(0, len(data) - 1, BPTT):
        length = min(BPTT, len(data) - 1 - start)
        yield data[start : start + length], data[start + 1 : start + 1 + length].reshape(-1)


train_data, valid_data = batchify(train_words, BATCH), batchify(valid_words, BATCH)
model = LanguageModel(len(vocabulary))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-3)

for epoch in range(EPOCHS):
    model.train()
    state, total, count = None, 0.0, 0
    for tokens, targets in segments(train_data):
        if state is not None:
            state = state.detach()
        optimizer.zero_grad()
        logits, state = model(tokens, state)
        loss = criterion(logits.view(-1, len(vocabulary)), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        total, count = total + loss.item(), count + 1

    model.eval()
    state, valid_total, valid_count = None, 0.0, 0
    with torch.no_grad():
        for tokens, targets in segments(valid_data):
            logits, state = model(tokens, state)
            valid_total += criterion(logits.view(-1, len(vocabulary)), targets).item()
            valid_count += 1
    print(f"epoch {epoch} | train {total / count:.3f} | valid {valid_total / valid_count:.3f}")
