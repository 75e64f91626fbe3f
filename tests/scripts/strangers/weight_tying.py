"""A feed-forward n-gram language model whose output layer shares the embedding's weights."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class TiedNGram(nn.Module):
    def __init__(self, vocab: int, dim: int, context: int):
        super().__init__()
        self.emb = nn.Embedding(vocab, dim)
        self.mix = nn.Linear(context * dim, dim)
        self.act = nn.GELU()
        self.norm = nn.LayerNorm(dim)
        self.head = nn.Linear(dim, vocab, bias=False)
        nn.init.normal_(self.emb.weight, std=0.1)
        self.head.weight = self.emb.weight  # tie

    def forward(self, ctx):
        h = self.emb(ctx).flatten(1)
        return self.head(self.norm(self.act(self.mix(h))))


def corpus(n, vocab, seed):
    """A second-order chain: the next symbol depends on the two before it, with some noise."""
    g = torch.Generator().manual_seed(seed)
    table = torch.randint(0, vocab, (vocab, vocab), generator=torch.Generator().manual_seed(77))
    seq = [0, 1]
    for _ in range(n):
        if torch.rand((), generator=g) < 0.1:
            seq.append(int(torch.randint(0, vocab, (), generator=g)))
        else:
            seq.append(int(table[seq[-2], seq[-1]]))
    return torch.tensor(seq)


torch.manual_seed(0)
vocab, context = 10, 2
seq = corpus(2400, vocab, 5)
ctx = seq.unfold(0, context, 1)[:-1]
nxt = seq[context:]
loader = DataLoader(TensorDataset(ctx, nxt), batch_size=100, shuffle=True, drop_last=True)
model = TiedNGram(vocab, 32, context)
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
criterion = nn.CrossEntropyLoss(label_smoothing=0.05)
for epoch in range(6):
    losses = []
    for c, n in loader:
        optimizer.zero_grad()
        loss = criterion(model(c), n)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(epoch, "%.3f" % (sum(losses) / len(losses)))
