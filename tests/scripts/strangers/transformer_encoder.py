"""nn.TransformerEncoder with padding masks: does the sequence hold the token 1 anywhere?"""

import math
from functools import partial

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

PAD, VOCAB, MAX_LEN = 0, 12, 14


class HasOne(Dataset):
    def __init__(self, size, seed):
        g = torch.Generator().manual_seed(seed)
        self.items = []
        for k in range(size):
            length = int(torch.randint(6, MAX_LEN + 1, (1,), generator=g))
            seq = torch.randint(2, VOCAB, (length,), generator=g)
            label = k % 2
            if label:
                seq[int(torch.randint(0, length, (1,), generator=g))] = 1
            self.items.append((seq, label))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        return self.items[i]


def pad_collate(batch, length=MAX_LEN):
    tokens = torch.full((len(batch), length), PAD)
    for row, (seq, _) in zip(tokens, batch):
        row[: len(seq)] = seq
    return {"tokens": tokens, "mask": tokens == PAD, "labels": torch.tensor([label for _, label in batch])}


class PositionalEncoding(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        position = torch.arange(MAX_LEN).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model))
        pe = torch.zeros(1, MAX_LEN, d_model)
        pe[0, :, 0::2] = torch.sin(position * div_term)
        pe[0, :, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


class Encoder(nn.Module):
    def __init__(self, d_model=32):
        super().__init__()
        self.embed = nn.Embedding(VOCAB, d_model, padding_idx=PAD)
        self.pos = PositionalEncoding(d_model)
        layer = nn.TransformerEncoderLayer(d_model, nhead=4, dim_feedforward=64, dropout=0.1, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, num_layers=2, enable_nested_tensor=False)
        self.classify = nn.Linear(d_model, 2)

    def forward(self, tokens, mask):
        hidden = self.encoder(self.pos(self.embed(tokens)), src_key_padding_mask=mask)
        keep = (~mask).unsqueeze(-1).float()
        return self.classify((hidden * keep).sum(1) / keep.sum(1))


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for batch in loader:
            correct += (model(batch["tokens"], batch["mask"]).argmax(-1) == batch["labels"]).sum().item()
    model.train()
    return correct / len(loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    collate = partial(pad_collate, length=MAX_LEN)
    train_loader = DataLoader(HasOne(768, 1), batch_size=64, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(HasOne(128, 2), batch_size=64, collate_fn=collate)
    model = Encoder()
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
    for epoch in range(6):
        total = 0.0
        for batch in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(batch["tokens"], batch["mask"]), batch["labels"])
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            total += loss.item()
        print(f"epoch {epoch} train {total / len(train_loader):.3f} valid accuracy {evaluate(model, valid_loader):.3f}")
