"""Support tickets to queues: bag of words with an embedding bag, labels from the crowd."""
import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset

random.seed(7)
torch.manual_seed(7)
QUEUES = ["billing", "login", "delivery", "returns", "hardware"]
VOCABULARY = 300


def ticket(queue):
    own = range(20 + 40 * queue, 60 + 40 * queue)
    return [random.choice(own) if random.random() < 0.45 else random.randrange(VOCABULARY) for _ in range(24)]


class Tickets(Dataset):
    def __init__(self, count, crowd):
        self.rows = []
        for _ in range(count):
            queue = random.randrange(len(QUEUES))
            answer = random.randrange(len(QUEUES)) if crowd and random.random() < 0.25 else queue
            self.rows.append((ticket(queue), answer))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        words, answer = self.rows[index]
        return torch.tensor(words), answer


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(VOCABULARY, 32)
        self.out = nn.Linear(32, len(QUEUES))

    def forward(self, tokens):
        return self.out(self.words(tokens))


training = DataLoader(Tickets(2500, crowd=True), batch_size=50, shuffle=True)  # <- fault
validation = DataLoader(Tickets(500, crowd=False), batch_size=100)
router = Router()
optimizer = torch.optim.Adam(router.parameters(), lr=0.01)
for epoch in range(10):
    router.train()
    for tokens, queue in training:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(router(tokens), queue)
        loss.backward()
        optimizer.step()
    router.eval()
    with torch.no_grad():
        hits = sum((router(tokens).argmax(1) == queue).sum().item() for tokens, queue in validation)
    print(f"epoch {epoch}: loss {loss.item():.3f}, validation {hits / 500:.3f}")
