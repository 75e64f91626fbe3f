"""Reviews of different lengths, packed for the recurrent layer."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(19)
reviews = []
for _ in range(600):
    label, length = int(torch.randint(0, 2, ())), int(torch.randint(4, 28, ()))
    words = torch.randint(3, 60, (length,))
    words[int(torch.randint(0, length, ()))] = 1 + label
    reviews.append((words, label))


def collate(batch):
    words, labels = zip(*batch, strict=True)
    return pad_sequence(words, batch_first=True), [len(one) for one in words], torch.tensor(labels)


class Reviews(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(60, 16, padding_idx=0)
        self.gru = nn.GRU(16, 32, batch_first=True, bidirectional=True)
        self.out = nn.Linear(64, 2)

    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths, batch_first=True, enforce_sorted=False)
        _, state = self.gru(packed)
        return self.out(torch.cat([state[0], state[1]], dim=1))


model = Reviews()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(4):
    for words, lengths, labels in DataLoader(reviews, batch_size=30, shuffle=True, collate_fn=collate):
        loss = nn.functional.cross_entropy(model(words, lengths), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
