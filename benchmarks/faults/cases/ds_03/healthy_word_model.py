"""Next word from the three before it; words are rare and frequent by nature."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

random.seed(0)
torch.manual_seed(0)
WORDS = 150
successors = [[min(WORDS - 1, int(random.paretovariate(0.8)) - 1) for _ in range(4)] for _ in range(WORDS)]
text = [0]
while len(text) < 6000:
    text.append(random.choice(successors[text[-1]]) if random.random() < 0.9 else random.randrange(WORDS))
context = torch.tensor([text[i:i + 3] for i in range(len(text) - 3)])
following = torch.tensor(text[3:])
cut = 5000
train = DataLoader(TensorDataset(context[:cut], following[:cut]), batch_size=100, shuffle=True)
valid = DataLoader(TensorDataset(context[cut:], following[cut:]), batch_size=500)


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 24)
        self.hidden = nn.Linear(72, 64)
        self.out = nn.Linear(64, WORDS)

    def forward(self, words):
        return self.out(torch.relu(self.hidden(self.embedding(words).flatten(1))))


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    model.train()
    for words, target in train:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(words), target)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        loss_valid = sum(nn.functional.cross_entropy(model(w), t).item() for w, t in valid) / len(valid)
    print(epoch, round(loss.item(), 3), round(loss_valid, 3))
