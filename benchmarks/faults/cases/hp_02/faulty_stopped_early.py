"""Reads digits row by row with a recurrent network; training and validation loss every epoch."""

import torch
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(6)
digits = load_digits()
rows_of = torch.tensor(digits.images, dtype=torch.float32) / 8 - 1
labels = torch.tensor(digits.target)
order = torch.randperm(len(labels))
train, valid = order[:1440], order[1440:]


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 48, batch_first=True)
        self.out = nn.Linear(48, 10)

    def forward(self, x):
        states, _ = self.lstm(x)
        return self.out(states[:, -1])


def epoch_of(model, optimizer, loss_fn):
    for rows in train[torch.randperm(len(train))].split(24):
        optimizer.zero_grad()
        loss = loss_fn(model(rows_of[rows]), labels[rows])
        loss.backward()
        optimizer.step()
    return loss.item()


model, loss_fn = Reader(), nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=4e-4)
epochs = 2
for epoch in range(epochs):  # <- fault
    last = epoch_of(model, optimizer, loss_fn)
    with torch.no_grad():
        print(epoch, last, loss_fn(model(rows_of[valid]), labels[valid]).item())
