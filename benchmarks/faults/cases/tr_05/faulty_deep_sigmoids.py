"""A deep perceptron on digits."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
loader = DataLoader(TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y)), batch_size=64, shuffle=True)

layers = [nn.Linear(64, 48), nn.Sigmoid()]
for _ in range(7):
    layers += [nn.Linear(48, 48), nn.Sigmoid()]  # <- fault
layers.append(nn.Linear(48, 10))
model = nn.Sequential(*layers)

optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(10):
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch}: {loss.item():.4f}")
