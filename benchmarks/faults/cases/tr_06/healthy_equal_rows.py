"""A survey with ten yes-or-no answers: many people answer alike, so both splits hold equal rows."""

import torch
from torch import nn

torch.manual_seed(4)
people = 1600
traits = torch.randn(people, 3)
answers = (traits @ torch.randn(3, 10) + 0.7 * torch.randn(people, 10) > 0).float()
buys = (traits[:, 0] + 0.4 * torch.randn(people) > 0).long()
order = torch.randperm(people)
fit, held = order[:1200], order[1200:]

net = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 2))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for epoch in range(6):
    net.train()
    for rows in fit[torch.randperm(1200)].split(40):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(net(answers[rows]), buys[rows])
        loss.backward()
        optimizer.step()
    net.eval()
    with torch.no_grad():
        accuracy = (net(answers[held]).argmax(1) == buys[held]).float().mean()
    print(f"epoch {epoch}: loss {loss.item():.3f} accuracy {accuracy.item():.3f}")
