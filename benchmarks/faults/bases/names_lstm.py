import random

import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence

random.seed(3)
torch.manual_seed(3)

SYLLABLES = {
    "north": ["bjor", "thor", "gun", "sven", "hil", "da", "rik", "ulf", "gard", "mund", "leif", "dis"],
    "south": ["gio", "van", "ni", "ma", "ria", "lu", "ca", "ro", "ber", "to", "fran", "ce"],
    "east": ["hi", "ro", "shi", "ta", "ka", "yo", "ke", "su", "mi", "na", "chi", "zu"],
}
GROUPS = list(SYLLABLES)
ALPHABET = "abcdefghijklmnopqrstuvwxyz"


def make_names(count):
    seen = set()
    rows = []
    while len(rows) < count:
        group = random.randrange(len(GROUPS))
        word = "".join(random.choice(SYLLABLES[GROUPS[group]]) for _ in range(random.randint(2, 4)))
        if word in seen:
            continue
        seen.add(word)
        rows.append((word, group))
    return rows


def encode(word):
    return torch.tensor([1 + ALPHABET.index(letter) for letter in word])


class NameClassifier(nn.Module):
    def __init__(self, hidden=48):
        super().__init__()
        self.embedding = nn.Embedding(len(ALPHABET) + 1, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, hidden, batch_first=True)
        self.hidden = nn.Linear(hidden, 32)
        self.out = nn.Linear(32, len(GROUPS))

    def forward(self, tokens, lengths):
        packed = pack_padded_sequence(self.embedding(tokens), lengths, batch_first=True, enforce_sorted=False)
        _, (state, _) = self.lstm(packed)
        features = torch.tanh(self.hidden(state[-1]))
        return self.out(features)


def batches(rows, size, shuffle):
    order = list(range(len(rows)))
    if shuffle:
        random.shuffle(order)
    for start in range(0, len(order), size):
        chosen = [rows[i] for i in order[start : start + size]]
        tokens = [encode(word) for word, _ in chosen]
        lengths = torch.tensor([len(t) for t in tokens])
        yield pad_sequence(tokens, batch_first=True), lengths, torch.tensor([group for _, group in chosen])


names = make_names(900)
train_rows, dev_rows = names[:720], names[720:]
net = NameClassifier()
optim = torch.optim.Adam(net.parameters(), lr=3e-3)
loss_fn = nn.CrossEntropyLoss()

for epoch in range(6):
    net.train()
    losses = []
    for tokens, lengths, groups in batches(train_rows, 40, shuffle=True):
        scores = net(tokens, lengths)
        loss = loss_fn(scores, groups)
        optim.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optim.step()
        losses.append(loss.item())
    net.eval()
    right = 0
    with torch.no_grad():
        for tokens, lengths, groups in batches(dev_rows, 90, shuffle=False):
            right += (net(tokens, lengths).argmax(-1) == groups).sum().item()
    print(epoch, f"train loss {sum(losses) / len(losses):.3f}", f"dev accuracy {right / len(dev_rows):.3f}")
