"""Gestures: several sensors over time, filled up with zeros; a mean over time goes to the classifier."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(15)
samples = []
for _ in range(500):
    gesture, length = int(torch.randint(0, 4, ())), int(torch.randint(8, 40, ()))
    time = torch.linspace(0, 3, length).unsqueeze(1)
    signal = torch.sin(time * (gesture + 1) + torch.arange(5.0)) + 0.2 * torch.randn(length, 5)
    samples.append((signal, gesture))


def collate(batch):
    signals, gestures = zip(*batch, strict=True)
    return pad_sequence(signals, batch_first=True), torch.tensor(gestures)


class Gestures(nn.Module):
    def __init__(self):
        super().__init__()
        self.step = nn.Sequential(nn.Linear(5, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU())
        self.decide = nn.Linear(32, 4)

    def forward(self, signals):
        return self.decide(self.step(signals).mean(dim=1))  # <- fault


loader = DataLoader(samples, batch_size=25, shuffle=True, collate_fn=collate)
model = Gestures()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for epoch in range(5):
    for signals, gestures in loader:
        loss = nn.functional.cross_entropy(model(signals), gestures)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
