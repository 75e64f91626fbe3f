"""Topic of short made-up texts from averaged word vectors, in a class with a fit method."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Texts(Dataset):
    def __init__(self, count, seed):
        rng = np.random.default_rng(seed)
        self.labels = rng.integers(0, 4, count)
        common = rng.integers(40, 600, (count, 14))
        hints = self.labels[:, None] * 10 + rng.integers(0, 10, (count, 14))
        self.words = np.where(rng.random((count, 14)) < 0.12, hints, common)

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, index):
        return torch.from_numpy(self.words[index]), int(self.labels[index])


class TopicModel(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(600, 64)
        self.layers = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))

    def forward(self, tokens):
        return self.layers(self.words(tokens).mean(1))


class Learner:
    def __init__(self, epochs=90):
        self.epochs = epochs
        self.model = TopicModel()
        self.loss = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=5e-3)

    def run(self, loader, train):
        self.model.train(train)
        total = 0.0
        for words, topics in loader:
            with torch.set_grad_enabled(train):
                loss = self.loss(self.model(words), topics)
            if train:
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    def fit(self, train, valid):
        for epoch in range(self.epochs):  # <- fault
            losses = self.run(train, True), self.run(valid, False)
            print(epoch, *(round(loss, 3) for loss in losses))


torch.manual_seed(2)
Learner().fit(DataLoader(Texts(400, 1), 40, shuffle=True), DataLoader(Texts(400, 2), 100))
