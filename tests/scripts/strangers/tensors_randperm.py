# plain tensors, no Dataset, no DataLoader
import torch
import torch.nn as nn
from sklearn.datasets import load_breast_cancer

torch.manual_seed(0)
data = load_breast_cancer()
x = torch.tensor(data.data, dtype=torch.float32)
y = torch.tensor(data.target, dtype=torch.float32).unsqueeze(1)
perm = torch.randperm(len(x))
x, y = x[perm], y[perm]
n = 450
mu, sd = x[:n].mean(0), x[:n].std(0)
x = (x - mu) / sd
xtr, ytr, xte, yte = x[:n], y[:n], x[n:], y[n:]

model = nn.Sequential(nn.Linear(30, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
lossf = nn.BCEWithLogitsLoss()
bs = 50
for ep in range(10):
    idx = torch.randperm(n)
    tot = 0
    for i in range(0, n, bs):
        j = idx[i : i + bs]
        out = model(xtr[j])
        loss = lossf(out, ytr[j])
        opt.zero_grad()
        loss.backward()
        opt.step()
        tot += loss.item()
    with torch.no_grad():
        acc = ((model(xte) > 0).float() == yte).float().mean().item()
    print(ep, round(tot / (n // bs), 4), round(acc, 3))
