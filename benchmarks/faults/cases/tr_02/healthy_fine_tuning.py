"""A pretrained backbone that is left out of the optimizer on purpose, and a group that is added later."""

import tempfile

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)


def backbone():
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())


class Classifier(nn.Module):
    def __init__(self, body):
        super().__init__()
        self.body = body
        self.neck = nn.Linear(16, 16)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        return self.head(torch.relu(self.neck(self.body(x))))


with tempfile.NamedTemporaryFile() as file:
    torch.save(backbone().state_dict(), file.name)
    body = backbone()
    body.load_state_dict(torch.load(file.name))
model = Classifier(body)
optimizer = torch.optim.SGD(model.head.parameters(), lr=0.05)
for step in range(30):
    if step == 1:
        optimizer.add_param_group({"params": model.neck.parameters(), "lr": 0.01})
    y = torch.randint(0, 4, (32,))
    x = torch.randn(32, 10)
    x[torch.arange(32), y] += 2
    loss = F.cross_entropy(model(x), y)
    model.zero_grad()
    loss.backward()
    optimizer.step()
