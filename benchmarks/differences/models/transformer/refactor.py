import numpy as np
import torch
from torch import nn, optim


class Corpus:
    def __init__(self, vocabulary, size, context):
        rng = np.random.default_rng(0)
        followers = rng.integers(0, vocabulary, (vocabulary, 3))
        stream = [0]
        while len(stream) < size:
            usual = rng.integers(3) if rng.random() < 0.9 else None
            stream.append(rng.integers(vocabulary) if usual is None else followers[stream[-1], usual])
        self.stream, self.context = torch.tensor(np.array(stream)), context

    def windows(self, steps, size):
        rng = np.random.default_rng(11)
        for _ in range(steps):
            begins = rng.integers(0, len(self.stream) - self.context, size)
            pieces = torch.stack([self.stream[begin : begin + self.context + 1] for begin in begins])
            yield pieces[:, :-1], pieces[:, 1:]


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.scale = heads, (width // heads) ** -0.5
        self.output = nn.Linear(width, width)
        self.projections = nn.Linear(width, 3 * width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        queries, keys, values = map(self.split, self.projections(x).chunk(3, dim=-1))
        scores = torch.einsum("bhqd,bhkd->bhqk", queries, keys)
        scores = scores * self.scale
        future = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        attention = torch.softmax(scores.masked_fill(future, -1e9), -1)
        return self.output((attention @ values).transpose(1, 2).flatten(2))


class FeedForward(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Linear(width, 4 * width), nn.GELU(approximate="none"), nn.Linear(4 * width, width))


class Residual(nn.Module):
    """A branch behind a norm, with dropout, added to what came in."""

    def __init__(self, width, branch, dropout):
        super().__init__()
        self.branch = branch
        self.norm = nn.LayerNorm(width, eps=1e-5)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        change = self.dropout(self.branch(self.norm(x)))
        return x + change


class GPT(nn.Module):
    def __init__(self, vocabulary=40, context=24, width=32, heads=4, depth=2, dropout=0.1):
        super().__init__()
        layers = []
        for _ in range(depth):
            layers.append(Residual(width, Attention(width, heads), dropout))
            layers.append(Residual(width, FeedForward(width), dropout))
        self.layers = nn.Sequential(*layers, nn.LayerNorm(width, eps=1e-5))
        self.unembed = nn.Linear(width, vocabulary, bias=True)
        self.position = nn.Parameter(torch.empty(context, width))
        self.token = nn.Embedding(vocabulary, width)
        nn.init.normal_(self.position, std=0.02)
        nn.init.normal_(self.token.weight, std=0.02)

    def forward(self, tokens):
        return self.unembed(self.layers(self.token(tokens) + self.position))


def train(steps=80, batch=16):
    torch.manual_seed(5)
    corpus = Corpus(40, 6000, 24)
    gpt = GPT()
    cross_entropy = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.0)
    adam = optim.AdamW(gpt.parameters(), 2e-3, eps=1e-8, weight_decay=0.1)
    schedule = optim.lr_scheduler.MultiStepLR(adam, [30, 60], 0.4)
    for number, (tokens, following) in enumerate(corpus.windows(steps, batch)):
        adam.zero_grad()
        scores = gpt(tokens)
        loss = cross_entropy(scores.transpose(1, 2), following)
        loss.backward()
        nn.utils.clip_grad_norm_(gpt.parameters(), max_norm=0.25)
        adam.step()
        schedule.step()
        if number % 10 == 0:
            print(number, round(loss.item(), 4))


if __name__ == "__main__":
    train()
