# no torch.optim anywhere: the update is written out
import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_iris

torch.manual_seed(4)
iris = load_iris()
x = torch.tensor(iris.data, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = torch.tensor(iris.target)
mix = torch.randperm(150)
x, y, x_test, y_test = x[mix[:120]], y[mix[:120]], x[mix[120:]], y[mix[120:]]

model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))
lr = 0.1

for epoch in range(15):
    for idx in torch.randperm(120).split(12):
        loss = F.cross_entropy(model(x[idx]), y[idx])
        model.zero_grad()
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= lr * p.grad
    if epoch % 5 == 4:
        with torch.no_grad():
            acc = (model(x_test).argmax(1) == y_test).float().mean()
        print(f"epoch {epoch:2d} loss {loss.item():.3f} acc {acc:.3f}")
