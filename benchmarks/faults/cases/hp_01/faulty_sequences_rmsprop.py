"""Which of four patterns does a noisy series follow?"""

import torch
from torch import nn


def series(count, generator):
    kind = torch.randint(0, 4, (count,), generator=generator)
    t = torch.arange(24).float()
    shapes = torch.stack([torch.sin(t / 2), torch.sign(torch.sin(t / 3)), t / 12 - 1, torch.cos(t)])
    return (shapes[kind] + 0.3 * torch.randn(count, 24, generator=generator)).unsqueeze(-1), kind


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(1, 32, batch_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        _, state = self.rnn(x)
        return self.head(state[-1])


generator = torch.Generator().manual_seed(5)
torch.manual_seed(5)
x, y = series(1200, generator)
model = Classifier()
loss_fn = nn.CrossEntropyLoss()
opt = torch.optim.RMSprop(model.parameters(), lr=0.8)  # <- fault
for epoch in range(8):
    perm = torch.randperm(len(x), generator=generator)
    for i in range(0, len(x), 40):
        batch = perm[i : i + 40]
        opt.zero_grad()
        loss = loss_fn(model(x[batch]), y[batch])
        loss.backward()
        opt.step()
    print(f"{epoch} {loss.item():.3f}")
