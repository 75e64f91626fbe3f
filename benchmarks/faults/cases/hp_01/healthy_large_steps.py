"""A plain perceptron that takes large steps of stochastic gradient descent."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(2)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x, dtype=torch.float32) / 16
train = DataLoader(TensorDataset(x[:1500], torch.tensor(y[:1500])), batch_size=32, shuffle=True)
x_test, y_test = x[1500:], torch.tensor(y[1500:])

model = nn.Sequential(nn.Linear(64, 96), nn.Tanh(), nn.Linear(96, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
criterion = nn.CrossEntropyLoss()
for epoch in range(15):
    for inputs, labels in train:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        print(epoch, (model(x_test).argmax(1) == y_test).float().mean().item())
