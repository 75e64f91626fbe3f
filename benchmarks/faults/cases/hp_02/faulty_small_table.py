"""A wide perceptron on a small table with many uninformative columns."""

import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = make_classification(500, 30, n_informative=4, n_redundant=0, class_sep=0.7, flip_y=0.0, random_state=4)
x, y = torch.tensor(x, dtype=torch.float32), torch.tensor(y)
x_train, x_val, y_train, y_val = train_test_split(x, y, train_size=200, random_state=0)
train_loader = DataLoader(TensorDataset(x_train, y_train), batch_size=20, shuffle=True)
val_loader = DataLoader(TensorDataset(x_val, y_val), batch_size=100)

model = nn.Sequential(nn.Linear(30, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()

for epoch in range(60):  # <- fault
    model.train()
    for inputs, labels in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        loss.backward()
        optimizer.step()
    model.eval()
    total, right = 0.0, 0
    with torch.no_grad():
        for inputs, labels in val_loader:
            scores = model(inputs)
            total += criterion(scores, labels).item() * len(labels)
            right += (scores.argmax(1) == labels).sum().item()
    if epoch % 10 == 9:
        print(f"{epoch + 1}: train {loss.item():.3f} validation {total / len(x_val):.3f} accuracy {right / len(x_val):.3f}")
