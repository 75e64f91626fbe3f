"""Warm start from an earlier run, written with a small trainer class."""

import io

import torch
from sklearn.datasets import load_iris
from torch import nn


class Mlp(nn.Module):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.hidden = nn.Linear(n_in, 32)
        self.hidden2 = nn.Linear(32, 32)
        self.out = nn.Linear(32, n_out)

    def forward(self, x):
        return self.out(torch.relu(self.hidden2(torch.relu(self.hidden(x)))))


class Trainer:
    def __init__(self, weights):
        self.model = Mlp(4, 3)
        self.model.load_state_dict(torch.load(weights))
        self.model = Mlp(4, 3)  # <- fault
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=5e-3)
        self.loss = nn.CrossEntropyLoss()

    def fit(self, x, y, epochs):
        for _ in range(epochs):
            for index in torch.randperm(len(x)).split(16):
                self.optimizer.zero_grad()
                self.loss(self.model(x[index]), y[index]).backward()
                self.optimizer.step()


if __name__ == "__main__":
    torch.manual_seed(6)
    x, y = load_iris(return_X_y=True)
    x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
    saved = io.BytesIO()
    torch.save(Mlp(4, 3).state_dict(), saved)
    saved.seek(0)
    Trainer(saved).fit(x, torch.tensor(y), epochs=10)
