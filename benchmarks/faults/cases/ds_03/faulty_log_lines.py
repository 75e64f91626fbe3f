# Three kinds of log lines; batches are cut by hand, evaluation on a held-out part.
import numpy as np
import torch
from torch import nn, optim

rng = np.random.RandomState(3)
SIZES = {"info": 2600, "warning": 300, "outage": 50}


def lines(kind, count):
    centre = {"info": 0.0, "warning": 1.1, "outage": 2.0}[kind]
    rows = rng.normal(0, 1, (count, 16))
    rows[:, :3] += centre
    return rows


x = np.concatenate([lines(kind, count) for kind, count in SIZES.items()]).astype("float32")
y = np.repeat(np.arange(3), list(SIZES.values()))
xt = np.concatenate([lines(kind, 150) for kind in SIZES]).astype("float32")
yt = np.repeat(np.arange(3), 150)
x, y, xt, yt = map(torch.from_numpy, (x, y, xt, yt))

torch.manual_seed(3)
classifier = nn.Sequential(nn.Linear(16, 24), nn.Tanh(), nn.Linear(24, 3))
optimizer = optim.Adam(classifier.parameters(), lr=2e-3)
for epoch in range(10):
    classifier.train()
    order = torch.randperm(len(x))
    for start in range(0, len(order), 50):
        rows = order[start:start + 50]
        logits = classifier(x[rows])  # <- fault
        loss = nn.functional.cross_entropy(logits, y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    classifier.eval()
    with torch.no_grad():
        scores = classifier(xt)
        held_out = nn.functional.cross_entropy(scores, yt)
        accuracy = (scores.argmax(1) == yt).float().mean()
    print(epoch, round(loss.item(), 3), round(held_out.item(), 3), round(accuracy.item(), 3))
