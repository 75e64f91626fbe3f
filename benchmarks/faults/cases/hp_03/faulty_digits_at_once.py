"""Handwritten digits with a perceptron."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split

torch.manual_seed(0)
x, y = load_digits(return_X_y=True)
data = TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
train, test = random_split(data, [1500, 297])
train_loader = DataLoader(train, batch_size=1500, shuffle=True)  # <- fault
test_loader = DataLoader(test, batch_size=297)

model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
criterion = nn.CrossEntropyLoss()
for epoch in range(25):
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for inputs, labels in test_loader:
            accuracy = (model(inputs).argmax(1) == labels).float().mean()
    print(f"{epoch + 1}: loss {loss.item():.3f} accuracy {accuracy:.3f}")
