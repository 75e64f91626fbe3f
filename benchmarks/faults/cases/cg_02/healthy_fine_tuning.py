"""Fine-tuning on purpose: a loaded backbone is frozen as a whole, and a new head trains."""

import tempfile

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(5)


def make():
    return nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())


with tempfile.TemporaryDirectory() as folder:
    torch.save(make().state_dict(), folder + "/backbone.pt")
    backbone = make()
    backbone.load_state_dict(torch.load(folder + "/backbone.pt"))
backbone.requires_grad_(False)
model = nn.Sequential(backbone, nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 4))
opt = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=1e-2)
for step in range(30):
    y = torch.randint(0, 4, (32,))
    x = torch.randn(32, 10)
    x[torch.arange(32), y] += 2
    loss = F.cross_entropy(model(x), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
