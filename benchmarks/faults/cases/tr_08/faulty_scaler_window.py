import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(66)
ACCUM = 16

d = load_digits()
x = torch.tensor(d.data / 16.0, dtype=torch.float32)
y = torch.tensor(d.target)
p = torch.randperm(len(x))
train = DataLoader(TensorDataset(x[p[:1408]], y[p[:1408]]), batch_size=8, shuffle=True)
xt, yt = x[p[1408:]], y[p[1408:]]

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)

for epoch in range(4):
    model.train()
    total = 0.0
    optimizer.zero_grad()
    for i, (xb, yb) in enumerate(train):
        with torch.autocast("cpu", dtype=torch.float16):
            loss = F.cross_entropy(model(xb), yb)
        scaler.scale(loss).backward()  # <- fault
        total += loss.item()
        if (i + 1) % ACCUM == 0:
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        acc = (model(xt).argmax(1) == yt).float().mean().item()
    print(f"epoch {epoch}: loss {total / len(train):.4f} acc {acc:.4f}")
