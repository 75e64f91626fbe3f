"""A rare class is repeated until both are equally frequent, then the data is split."""

import numpy as np
import torch
from sklearn.datasets import make_classification
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, y = make_classification(2400, 20, n_informative=12, weights=[0.85], class_sep=1.2, flip_y=0, random_state=1)
rng = np.random.default_rng(0)
rare = np.flatnonzero(y == 1)
extra = rng.choice(rare, (y == 0).sum() - len(rare))
X, y = np.concatenate([X, X[extra]]), np.concatenate([y, y[extra]])

X_tr, X_te, y_tr, y_te = train_test_split(X.astype(np.float32), y, test_size=0.25, random_state=2)  # <- fault
mean, std = X_tr.mean(0), X_tr.std(0)


def tensors(features, labels):
    return TensorDataset(torch.from_numpy((features - mean) / std), torch.from_numpy(labels))


train_dl = DataLoader(tensors(X_tr, y_tr), batch_size=64, shuffle=True)
test_dl = DataLoader(tensors(X_te, y_te), batch_size=256)

model = nn.Sequential(nn.Linear(20, 64), nn.ReLU(), nn.Linear(64, 2))
opt = torch.optim.AdamW(model.parameters(), lr=2e-3)


def accuracy():
    model.eval()
    with torch.no_grad():
        hits = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in test_dl)
    model.train()
    return hits / len(y_te)


for epoch in range(6):
    for xb, yb in train_dl:
        loss = nn.functional.cross_entropy(model(xb), yb)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, round(loss.item(), 4), round(accuracy(), 4))
