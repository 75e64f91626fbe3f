# Word-level language model, truncated BPTT over one long stream (so: no shuffling, hidden state carried over).
import math

import torch
import torch.nn as nn

torch.manual_seed(1111)

SENTENCES = [
    "the cat sat on the mat <eos>",
    "the dog ran after the cat <eos>",
    "a bird sang in the tree <eos>",
    "the cat looked at the bird <eos>",
    "a dog slept under the tree <eos>",
    "the bird flew over the dog <eos>",
]
gen = torch.Generator().manual_seed(0)
words = " ".join(SENTENCES[i] for i in torch.randint(0, len(SENTENCES), (700,), generator=gen)).split()
vocab = {w: i for i, w in enumerate(sorted(set(words)))}
ids = torch.tensor([vocab[w] for w in words])


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    return data.narrow(0, 0, nbatch * bsz).view(bsz, -1).t().contiguous()


def get_batch(source, i, bptt=12):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


def repackage_hidden(h):
    return h.detach() if isinstance(h, torch.Tensor) else tuple(repackage_hidden(v) for v in h)


class RNNModel(nn.Module):
    def __init__(self, ntoken, ninp, nhid, dropout=0.1):
        super(RNNModel, self).__init__()
        self.drop = nn.Dropout(dropout)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = nn.LSTM(ninp, nhid, 1)
        self.decoder = nn.Linear(nhid, ntoken)
        self.ntoken, self.nhid = ntoken, nhid
        self.init_weights()

    def init_weights(self):
        nn.init.uniform_(self.encoder.weight, -0.1, 0.1)
        nn.init.zeros_(self.decoder.bias)
        nn.init.uniform_(self.decoder.weight, -0.1, 0.1)

    def forward(self, input, hidden):
        output, hidden = self.rnn(self.drop(self.encoder(input)), hidden)
        return self.decoder(self.drop(output)).view(-1, self.ntoken), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(1, bsz, self.nhid), weight.new_zeros(1, bsz, self.nhid)


split = int(len(ids) * 0.9)
train_data, val_data = batchify(ids[:split], 16), batchify(ids[split:], 8)
model = RNNModel(len(vocab), 24, 32)
criterion = nn.CrossEntropyLoss()
lr = 10.0


def evaluate(source):
    model.eval()
    total, hidden = 0.0, model.init_hidden(8)
    with torch.no_grad():
        for i in range(0, source.size(0) - 1, 12):
            data, targets = get_batch(source, i)
            output, hidden = model(data, hidden)
            hidden = repackage_hidden(hidden)
            total += len(data) * criterion(output, targets).item()
    return total / (len(source) - 1)


for epoch in range(1, 5):
    model.train()
    hidden = model.init_hidden(16)
    for i in range(0, train_data.size(0) - 1, 12):
        data, targets = get_batch(train_data, i)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
    val = evaluate(val_data)
    print("| end of epoch {:3d} | valid loss {:5.2f} | valid ppl {:8.2f}".format(epoch, val, math.exp(val)))
