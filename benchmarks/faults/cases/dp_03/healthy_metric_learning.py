"""Three classes with eight samples each per batch, chosen by a batch sampler of one's own."""

import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Sampler, TensorDataset


class ClassesPerBatch(Sampler):
    def __init__(self, labels, classes: int, samples: int, batches: int) -> None:
        self.places = [(labels == label).nonzero().flatten().tolist() for label in labels.unique()]
        self.classes, self.samples, self.batches = classes, samples, batches

    def __iter__(self):
        for _ in range(self.batches):
            yield [place for places in random.sample(self.places, self.classes) for place in random.sample(places, self.samples)]

    def __len__(self) -> int:
        return self.batches


torch.manual_seed(0)
random.seed(0)
y = torch.arange(10).repeat_interleave(40)
x = torch.randn(10, 12)[y] + torch.randn(400, 12)
loader = DataLoader(TensorDataset(x, y), batch_sampler=ClassesPerBatch(y, 3, 8, 15))
model = nn.Sequential(nn.Linear(12, 16), nn.ReLU(), nn.Linear(16, 8))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for inputs, labels in loader:
        codes = nn.functional.normalize(model(inputs))
        distance = 1 - codes @ codes.T
        same = labels[:, None] == labels[None]
        loss = (distance[same].mean() - distance[~same].mean() + 0.5).relu()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
