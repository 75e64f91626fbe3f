"""Two optimizers; only one of them is ever cleared."""

import torch
from torch import nn

torch.manual_seed(0)
body = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
head = nn.Linear(24, 3)
body_opt = torch.optim.SGD(body.parameters(), lr=0.01)
head_opt = torch.optim.SGD(head.parameters(), lr=0.01)
x = torch.randn(300, 6)
y = x[:, :3].argmax(1)
for epoch in range(3):
    for picked in torch.randperm(300).split(30):
        head_opt.zero_grad()
        loss = nn.functional.cross_entropy(head(body(x[picked])), y[picked])
        loss.backward()  # <- fault
        body_opt.step()
        head_opt.step()
    print(epoch, loss.item())
