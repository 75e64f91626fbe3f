import math

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

VOCAB, LENGTH, WIDTH, CLASSES = 32, 16, 32, 4


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.proj = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(width // self.heads), dim=-1)
        mixed = (weights @ v).transpose(1, 2).reshape(batch, length, width)
        return self.proj(mixed)


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.norm2 = nn.LayerNorm(width)
        self.expand = nn.Linear(width, 2 * width)
        self.contract = nn.Linear(2 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        hidden = torch.nn.functional.gelu(self.expand(self.norm2(x)))
        return x + self.contract(hidden)


class Classifier(nn.Module):
    def __init__(self, depth=3):
        super().__init__()
        self.tokens = nn.Embedding(VOCAB, WIDTH)
        self.positions = nn.Parameter(torch.randn(1, LENGTH, WIDTH) * 0.02)
        self.blocks = nn.ModuleList([Block(WIDTH, 4) for _ in range(depth)])
        self.norm = nn.LayerNorm(WIDTH)
        self.head = nn.Linear(WIDTH, CLASSES)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions
        for block in self.blocks:
            x = block(x)
        pooled = self.norm(x).mean(dim=1)
        return self.head(pooled)


def make_split(count, generator):
    """The class is the quarter of the vocabulary that most tokens come from."""
    ids = torch.randint(0, VOCAB, (count, LENGTH), generator=generator)
    quarter = torch.randint(0, CLASSES, (count,), generator=generator)
    chosen = torch.rand(count, LENGTH, generator=generator) < 0.4
    inside = quarter[:, None] * (VOCAB // CLASSES) + ids % (VOCAB // CLASSES)
    return TensorDataset(torch.where(chosen, inside, ids), quarter)


def run_epoch(model, loader, optimizer=None):
    training = optimizer is not None
    model.train(training)
    total, hits, seen = 0.0, 0, 0
    with torch.set_grad_enabled(training):
        for ids, target in loader:
            logits = model(ids)
            loss = nn.functional.cross_entropy(logits, target)
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            total += loss.item() * len(target)
            hits += (logits.argmax(-1) == target).sum().item()
            seen += len(target)
    return total / seen, hits / seen


if __name__ == "__main__":
    torch.manual_seed(11)
    generator = torch.Generator().manual_seed(5)
    train = DataLoader(make_split(1600, generator), batch_size=64, shuffle=True)
    valid = DataLoader(make_split(400, generator), batch_size=100)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.01)
    for epoch in range(5):
        train_loss, train_acc = run_epoch(model, train, optimizer)
        valid_loss, valid_acc = run_epoch(model, valid)
        print(f"{epoch} train {train_loss:.3f} {train_acc:.3f} valid {valid_loss:.3f} {valid_acc:.3f}")
