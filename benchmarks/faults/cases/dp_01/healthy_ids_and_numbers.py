"""Ratings from user and film ids in the tens of thousands, with two standardised numbers and a one-hot genre."""

import torch
from torch import nn

torch.manual_seed(4)
n = 4000
users = torch.randint(0, 20000, (n,))
films = torch.randint(0, 30000, (n,))
numbers = torch.randn(n, 2)
genre = torch.nn.functional.one_hot(torch.randint(0, 40, (n,)), 40).float()
score = 3 + numbers[:, 0] - 0.5 * numbers[:, 1] + genre[:, 3] + 0.2 * torch.randn(n)


class Ratings(nn.Module):
    def __init__(self):
        super().__init__()
        self.user = nn.Embedding(20000, 8)
        self.film = nn.Embedding(30000, 8)
        self.mlp = nn.Sequential(nn.Linear(58, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, user, film, numbers, genre):
        return self.mlp(torch.cat([self.user(user), self.film(film), numbers, genre], dim=1)).squeeze(1)


model = Ratings()
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
for epoch in range(3):
    for part in torch.randperm(n).split(200):
        prediction = model(users[part], films[part], numbers[part], genre[part])
        loss = nn.functional.mse_loss(prediction, score[part])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
