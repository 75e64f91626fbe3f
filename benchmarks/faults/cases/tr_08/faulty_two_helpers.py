from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F


@dataclass
class TrainArgs:
    grad_accum: int = 8
    micro_batch: int = 16
    updates: int = 120
    lr: float = 0.3
    seq: int = 16
    vocab: int = 24
    seed: int = 88


class Block(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.ln1(x)).view(b, t, 3, 2, d // 2).permute(2, 0, 3, 1, 4)
        a = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(a.transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.ln2(x))


class GPT(nn.Module):
    def __init__(self, a, d=32):
        super().__init__()
        self.tok, self.pos = nn.Embedding(a.vocab, d), nn.Embedding(a.seq, d)
        self.block = Block(d)
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, a.vocab, bias=False)

    def forward(self, idx):
        x = self.tok(idx) + self.pos.weight[:idx.size(1)]
        return self.head(self.ln(self.block(x)))


def sample(args, g):
    start = torch.randint(0, args.vocab, (args.micro_batch, 1), generator=g)
    step = torch.randint(1, 4, (args.micro_batch, 1), generator=g)
    s = (start + step * torch.arange(args.seq + 1)) % args.vocab
    return s[:, :-1], s[:, 1:]


def compute_loss(model, batch, args):
    x, y = batch
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = model(x)
    loss = F.cross_entropy(logits.float().flatten(0, 1), y.flatten())
    return loss / args.grad_accum


def main(args):
    torch.manual_seed(args.seed)
    g = torch.Generator().manual_seed(args.seed)
    model = GPT(args)
    opt = torch.optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
    for update in range(args.updates):
        opt.zero_grad(set_to_none=True)
        shown = 0.0
        for _ in range(args.grad_accum):
            loss = compute_loss(model, sample(args, g), args)
            shown += loss.item()
            loss = loss / args.grad_accum
            loss.backward()  # <- fault
        opt.step()
        if update % 20 == 0:
            print(f"update {update:4d} loss {shown:.4f}")
    print("final loss", shown)


main(TrainArgs())
