"""Which of four topics a sequence of words is about: an LSTM classifier."""

import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH, TOPICS = 60, 12, 4
EMBEDDING, HIDDEN = 24, 40

torch.manual_seed(3)


def make_sentences(count, seed):
    rng = np.random.default_rng(seed)
    topic = rng.integers(0, TOPICS, count)
    words = rng.integers(0, VOCAB, (count, LENGTH))
    own = topic[:, None] * 15 + rng.integers(0, 15, (count, LENGTH))
    return np.where(rng.random((count, LENGTH)) < 0.35, own, words), topic


class SentenceClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCAB, EMBEDDING)
        self.lstm = nn.LSTM(EMBEDDING, HIDDEN, batch_first=True)
        self.norm = nn.LayerNorm(HIDDEN)
        self.dropout = nn.Dropout(0.2)
        self.hidden = nn.Linear(HIDDEN, 32)
        self.output = nn.Linear(32, TOPICS)
        nn.init.uniform_(self.embedding.weight, -0.1, 0.1)

    def forward(self, words):
        states, _ = self.lstm(self.embedding(words))
        summary = self.norm(states.mean(dim=1))
        x = torch.tanh(self.hidden(self.dropout(summary)))
        return self.output(x)


words, topics = make_sentences(1056, seed=0)
dataset = TensorDataset(torch.from_numpy(words), torch.from_numpy(topics))
loader = DataLoader(dataset, batch_size=32, shuffle=True)
model = SentenceClassifier()
loss_function = nn.CrossEntropyLoss()
optimizer = torch.optim.AdamW(model.parameters(), lr=4e-3, weight_decay=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=30, gamma=0.5)

model.train()
for epoch in range(2):
    running = 0.0
    for i, (x, y) in enumerate(loader, 1):
        optimizer.zero_grad()
        loss = loss_function(model(x), y)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.1)
        optimizer.step()
        scheduler.step()
        running += loss.item()
        if i % 11 == 0:
            print(f"epoch {epoch} step {i}: {running / 11:.4f}")
            running = 0.0
