"""A stream with a shuffle buffer of 16 samples over 1200 that lie class after class, with augmentation."""

import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset


class Stream(IterableDataset):
    def __init__(self, buffer: int) -> None:
        self.buffer = buffer
        generator = torch.Generator().manual_seed(3)
        self.y = torch.arange(6).repeat_interleave(200)
        self.x = torch.randn(6, 20, generator=generator)[self.y] + torch.randn(1200, 20, generator=generator)

    def __iter__(self):
        held = []
        for sample, label in zip(self.x, self.y, strict=True):
            held.append((sample + 0.1 * torch.randn(20), label))
            if len(held) == self.buffer:
                yield held.pop(int(torch.randint(self.buffer, (1,))))
        yield from held


torch.manual_seed(0)
loader = DataLoader(Stream(buffer=16), batch_size=30)  # <- fault
model = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 6))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
