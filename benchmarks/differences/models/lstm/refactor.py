from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader, Dataset


@dataclass
class Settings:
    vocabulary: int = 60
    length: int = 12
    topics: int = 4
    width: int = 24
    state: int = 40
    dropout: float = 0.2
    rate: float = 4e-3
    max_norm: float = 0.1


class Topics(Dataset):
    def __init__(self, settings, count, seed):
        rng = np.random.default_rng(seed)
        shape = (count, settings.length)
        self.labels = rng.integers(0, settings.topics, count)
        anything = rng.integers(0, settings.vocabulary, shape)
        typical = self.labels[:, None] * 15 + rng.integers(0, 15, shape)
        self.tokens = np.where(rng.random(shape) < 0.35, typical, anything)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, i):
        return self.tokens[i], self.labels[i]


class Encoder(nn.Module):
    """Words to one vector: the mean of the states of an LSTM."""

    def __init__(self, settings):
        super().__init__()
        self.rnn = nn.LSTM(settings.width, settings.state)
        self.lookup = nn.Embedding(settings.vocabulary, settings.width)
        nn.init.uniform_(self.lookup.weight, -0.1, 0.1)

    def forward(self, tokens):
        # Time first, as the LSTM wants it.
        outputs, _ = self.rnn(self.lookup(tokens.t()))
        return outputs.mean(0)


def make_model(settings):
    encoder = Encoder(settings)
    head = nn.Sequential(
        nn.LayerNorm(settings.state, eps=1e-5),
        nn.Dropout(settings.dropout),
        nn.Linear(settings.state, 32),
        nn.Tanh(),
        nn.Linear(32, settings.topics),
    )
    return nn.Sequential(encoder, head)


class Trainer:
    def __init__(self, settings):
        self.settings = settings
        self.model = make_model(settings)
        self.criterion = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.0)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=settings.rate, weight_decay=0.1, eps=1e-8)
        self.schedule = torch.optim.lr_scheduler.StepLR(self.optimizer, 30, 0.5)

    def step(self, tokens, labels):
        loss = self.criterion(self.model(tokens), labels)
        self.optimizer.zero_grad()
        loss.backward()
        clip_grad_norm_(self.model.parameters(), self.settings.max_norm)
        self.optimizer.step()
        self.schedule.step()
        return loss.item()

    def fit(self, loader, epochs):
        self.model.train()
        for epoch in range(epochs):
            losses = [self.step(tokens, labels) for tokens, labels in loader]
            print(f"epoch {epoch}: first loss {losses[0]:.4f}, last loss {losses[-1]:.4f}, mean {np.mean(losses):.4f}")


if __name__ == "__main__":
    torch.manual_seed(3)
    settings = Settings()
    data = Topics(settings, 1056, seed=0)
    Trainer(settings).fit(DataLoader(data, batch_size=32, shuffle=True), epochs=2)
