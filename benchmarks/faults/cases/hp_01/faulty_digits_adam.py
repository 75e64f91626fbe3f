"""A multilayer perceptron on handwritten digits."""

import torch
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x, dtype=torch.float32) / 16
y = torch.tensor(y)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, random_state=1, stratify=y)
loader = DataLoader(TensorDataset(x_train, y_train), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1.0)  # <- fault

for epoch in range(12):
    model.train()
    total = 0.0
    for inputs, labels in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(labels)
    model.eval()
    with torch.no_grad():
        accuracy = (model(x_test).argmax(1) == y_test).float().mean()
    print(f"epoch {epoch + 1}: loss {total / len(x_train):.4f} accuracy {accuracy:.3f}")
