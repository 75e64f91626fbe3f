"""Part-of-speech style tagging with a small transformer encoder."""
from dataclasses import dataclass

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pad_sequence


@dataclass
class HP:
    vocab: int = 60
    tags: int = 5
    dim: int = 32
    heads: int = 4
    layers: int = 2
    lr: float = 2e-3
    steps: int = 350
    batch: int = 32
    seed: int = 19


def sample_sentence(hp, gen):
    n = int(torch.randint(4, 24, (1,), generator=gen))
    toks = torch.randint(1, hp.vocab, (n,), generator=gen)
    kind = toks % hp.tags
    prev = torch.cat([toks.new_zeros(1), kind[:-1]])
    tags = torch.where(toks > 40, (kind + prev) % hp.tags, kind)
    return toks, tags


def make_batch(hp, gen):
    pairs = [sample_sentence(hp, gen) for _ in range(hp.batch)]
    lengths = torch.tensor([len(t) for t, _ in pairs])
    toks = pad_sequence([t for t, _ in pairs], batch_first=True)
    tags = pad_sequence([t for _, t in pairs], batch_first=True, padding_value=-100)
    toks = torch.cat([toks, toks.new_zeros(hp.batch, 1)], 1)
    tags = torch.cat([tags, tags.new_full((hp.batch, 1), -100)], 1)
    return toks, tags, lengths


class Tagger(nn.Module):
    def __init__(self, hp):
        super().__init__()
        self.tok = nn.Embedding(hp.vocab, hp.dim, padding_idx=0)
        self.pos = nn.Embedding(64, hp.dim)
        layer = nn.TransformerEncoderLayer(hp.dim, hp.heads, 64, dropout=0.0, batch_first=True)
        self.enc = nn.TransformerEncoder(layer, hp.layers, enable_nested_tensor=False)
        self.out = nn.Linear(hp.dim, hp.tags)

    def forward(self, toks, lengths):
        pos = torch.arange(toks.shape[1])
        mask = pos[None] < lengths[:, None]
        h = self.enc(self.tok(toks) + self.pos(pos), src_key_padding_mask=mask)  # <- fault
        return self.out(h)


def main(hp=HP()):
    torch.manual_seed(hp.seed)
    gen = torch.Generator().manual_seed(hp.seed)
    model = Tagger(hp)
    opt = torch.optim.Adam(model.parameters(), lr=hp.lr)
    loss_fn = nn.CrossEntropyLoss(ignore_index=-100)
    for step in range(hp.steps):
        toks, tags, lengths = make_batch(hp, gen)
        logits = model(toks, lengths)
        loss = loss_fn(logits.flatten(0, 1), tags.flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        if step % 50 == 49:
            model.eval()
            with torch.no_grad():
                toks, tags, lengths = make_batch(hp, torch.Generator().manual_seed(999))
                keep = tags != -100
                acc = (model(toks, lengths).argmax(-1)[keep] == tags[keep]).float().mean()
            model.train()
            print(f"step {step + 1} loss {loss.item():.4f} tag acc {acc:.3f}")


if __name__ == "__main__":
    main()
