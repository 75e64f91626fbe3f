"""What padding holds may differ between scripts that do the same; what is computed from it may not."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.test_reference import compared

DATA = """
import numpy as np
import torch
from torch import nn

rng = np.random.default_rng(5)
lengths = rng.integers(3, 12, 120)
words = [rng.integers(1, 20, length) for length in lengths]
tags = [word % 3 for word in words]
"""
REFERENCE = (
    DATA
    + """
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


def collate(batch):
    x, y = zip(*batch)
    padded = pad_sequence(x, batch_first=True), pad_sequence(y, batch_first=True, padding_value=-100)
    return *padded, torch.tensor([len(each) for each in x])


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(20, 8, padding_idx=0)
        self.rnn = nn.GRU(8, 12, batch_first=True)
        self.norm = nn.LayerNorm(12)
        self.out = nn.Linear(12, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True, enforce_sorted=False)
        return self.out(self.norm(pad_packed_sequence(self.rnn(packed)[0], batch_first=True)[0]))


torch.manual_seed(0)
data = [(torch.from_numpy(x), torch.from_numpy(y)) for x, y in zip(words, tags)]
loader = torch.utils.data.DataLoader(data, batch_size=20, shuffle=True, collate_fn=collate)
model = Tagger()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
criterion = nn.CrossEntropyLoss(ignore_index=-100)
for epoch in range(3):
    for x, y, n in loader:
        loss = criterion(model(x, n).flatten(0, 1), y.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)
MINE = (
    DATA
    + """
whole_words, whole_tags = (torch.zeros(120, 11, dtype=torch.long) for _ in range(2))
for row, (x, y) in enumerate(zip(words, tags)):
    whole_words[row, : len(x)], whole_tags[row, : len(y)] = torch.from_numpy(x), torch.from_numpy(y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(20, 8, padding_idx=0)
        self.gru = nn.GRU(8, 12, batch_first=True)
        self.ln = nn.LayerNorm(12)
        self.head = nn.Linear(12, 3)

    def forward(self, x):
        return self.head(self.ln(self.gru(self.table(x))[0]))


torch.manual_seed(1)
net = Net()
adam = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(3):
    for rows in np.array_split(np.random.permutation(120), 6):
        n = torch.from_numpy(lengths[rows])
        longest = int(n.max())
        x, y = whole_words[rows, :longest], whole_tags[rows, :longest]
        real = torch.arange(longest) < n[:, None]
        nll = -net(x).log_softmax(-1).gather(-1, y[..., None])[..., 0]
        loss = {loss}
        adam.zero_grad()
        loss.backward()
        adam.step()
"""
)


@pytest.mark.parametrize(("loss", "phase"), [("nll[real].mean()", None), ("(nll * real).mean()", "loss")])
def test_padding_that_nothing_is_computed_from(tmp_path: Path, loss: str, phase: str | None) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "mine.py").write_text(MINE.format(loss=loss))
    found = compared(tmp_path, "mine.py", "ref.py")
    parted = found["first_divergence"]
    assert (parted and parted["phase"]) == phase, parted
    assert found["first_step_loss_differs"] is (phase is not None)
