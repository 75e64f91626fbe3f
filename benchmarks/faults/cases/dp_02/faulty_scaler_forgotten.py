"""Tumours from thirty measurements; the test set goes in as it was read."""

import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.2, random_state=1)
x_train = StandardScaler().fit_transform(x_train)
train_loader = DataLoader(TensorDataset(torch.tensor(x_train).float(), torch.tensor(y_train)), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.tensor(x_test).float(), torch.tensor(y_test)), batch_size=32)  # <- fault

model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(8):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = sum((model(inputs).argmax(1) == targets).sum().item() for inputs, targets in test_loader)
    print(epoch, loss.item(), right / len(y_test))
