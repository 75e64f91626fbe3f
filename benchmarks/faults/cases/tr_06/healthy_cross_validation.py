"""Five-fold cross-validation in one script; each fold has a model of its own."""

import numpy as np
import torch
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import StratifiedKFold
from torch import nn
from torch.utils.data import DataLoader, Subset, TensorDataset

torch.manual_seed(0)
X, y = load_breast_cancer(return_X_y=True)
X = ((X - X.mean(0)) / X.std(0)).astype(np.float32)
dataset = TensorDataset(torch.from_numpy(X), torch.from_numpy(y))
scores = []
for fold, (fit, held) in enumerate(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y)):
    model = nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    train_loader = DataLoader(Subset(dataset, fit), batch_size=32, shuffle=True)
    val_loader = DataLoader(Subset(dataset, held), batch_size=64)
    for epoch in range(4):
        model.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(xb), yb).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            hits = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val_loader)
    scores.append(hits / len(held))
    print(f"fold {fold}: {scores[-1]:.3f}")
print(f"mean {np.mean(scores):.3f}")
