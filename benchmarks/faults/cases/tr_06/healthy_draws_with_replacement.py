"""Short numbers, letter by letter: batches are drawn with replacement, and both parts of the data are looked at now and then."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, RandomSampler

LETTERS = "abcdefghij"
LENGTH = 12


class Words(Dataset):
    def __init__(self, words):
        self.words = words

    def __len__(self):
        return len(self.words)

    def __getitem__(self, index):
        codes = torch.tensor([1 + LETTERS.index(letter) for letter in self.words[index]])
        return torch.cat([torch.zeros(1, dtype=torch.long), codes[:-1]]), codes


class Speller(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.letters = nn.Embedding(len(LETTERS) + 1, width)
        self.cell = nn.GRU(width, width, batch_first=True)
        self.out = nn.Linear(width, len(LETTERS) + 1)

    def forward(self, codes):
        return self.out(self.cell(self.letters(codes))[0])


def cost(model, x, y):
    return nn.functional.cross_entropy(model(x).flatten(0, 1), y.flatten())


@torch.no_grad()
def evaluate(model, words, batches=4):
    model.eval()
    loader = DataLoader(words, batch_size=100, shuffle=True)
    values = []
    for place, (x, y) in enumerate(loader):
        values.append(cost(model, x, y).item())
        if place + 1 == batches:
            break
    model.train()
    return sum(values) / len(values)


torch.manual_seed(4)
made = set()
while len(made) < 2000:
    start = int(torch.randint(0, 10, ()))
    steps = torch.randint(1, 4, (LENGTH - 1,)).cumsum(0).tolist()
    made.add("".join(LETTERS[(start + step) % 10] for step in [0, *steps]))
words = sorted(made)
order = torch.randperm(len(words)).tolist()
training, testing = Words([words[i] for i in order[:1800]]), Words([words[i] for i in order[1800:]])
sampler = RandomSampler(training, replacement=True, num_samples=10**7)
endless = iter(DataLoader(training, batch_size=32, sampler=sampler))

model = Speller()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(240):
    x, y = next(endless)
    loss = cost(model, x, y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 60 == 59:
        print(step + 1, f"{evaluate(model, training):.3f} {evaluate(model, testing):.3f}")
