"""Translation of digit strings: padding is masked in attention and ignored by the loss."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(1)
pairs = []
for _ in range(400):
    source = torch.randint(3, 30, (int(torch.randint(5, 16, ())),))
    pairs.append((source, torch.cat([torch.tensor([1]), source.flip(0) + 5, torch.tensor([2])])))


def collate(batch):
    sources, targets = zip(*batch, strict=True)
    return pad_sequence(sources, batch_first=True), pad_sequence(targets, batch_first=True)


class Translator(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.source, self.target = nn.Embedding(40, width, padding_idx=0), nn.Embedding(40, width, padding_idx=0)
        self.transformer = nn.Transformer(width, 4, 1, 1, 64, dropout=0.0, batch_first=True)
        self.out = nn.Linear(width, 40)

    def forward(self, source, target):
        causal = nn.Transformer.generate_square_subsequent_mask(target.shape[1])
        hidden = self.transformer(
            self.source(source), self.target(target), tgt_mask=causal, src_key_padding_mask=source == 0,
            tgt_key_padding_mask=target == 0, memory_key_padding_mask=source == 0,
        )  # fmt: skip
        return self.out(hidden)


model = Translator()
criterion = nn.CrossEntropyLoss(ignore_index=0)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for source, target in DataLoader(pairs, batch_size=25, shuffle=True, collate_fn=collate):
        scores = model(source, target[:, :-1])
        loss = criterion(scores.flatten(0, 1), target[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
