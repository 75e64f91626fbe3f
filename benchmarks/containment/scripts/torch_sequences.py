"""A time-major LSTM of which only the last state is used, with a gradient scaler, a penalty on gradients, a tied layer."""

import numpy as np
import torch
from torch import nn

torch.manual_seed(1)
sequences = torch.randn(7, 40, 5)
labels = (sequences.sum((0, 2)) > 0).long()


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 6)
        self.attention = nn.MultiheadAttention(6, 2)
        self.head = nn.Linear(6, 2)

    def forward(self, x):
        _, (h, _) = self.lstm(x)
        attended, _ = self.attention(h, h, h)
        return self.head(attended[-1])


model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127, growth_interval=100)
for step in range(8):
    index = torch.from_numpy(np.random.default_rng(step).permutation(40)[:10])
    x, y = sequences[:, index].requires_grad_(), labels[index]
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    (slope,) = torch.autograd.grad(loss, x, create_graph=True)
    loss = loss + 0.01 * slope.pow(2).sum()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.5)
    scaler.step(optimizer)
    scaler.update()
    print("step", step, loss.item())
model.eval()
with torch.no_grad():
    print("accuracy", (model(sequences).argmax(1) == labels).float().mean().item())
