import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

torch.manual_seed(0)
data = load_digits()
x = torch.tensor(data.data, dtype=torch.float32) / 16
y = (torch.tensor(data.target) == 8).long()
keep = torch.cat([torch.where(y == 0)[0], torch.where(y == 1)[0][:70]])
keep = keep[torch.randperm(len(keep))]
train, test = keep[:1200], keep[1200:]
counts = torch.bincount(y[train])
sampler = WeightedRandomSampler((1.0 / counts.float())[y[train]], num_samples=len(train))
loader = DataLoader(TensorDataset(x[train], y[train]), batch_size=40, sampler=sampler)
test_loader = DataLoader(TensorDataset(x[test], y[test]), batch_size=200)
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(10):
    model.train()
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in test_loader)
    print(epoch, round(loss.item(), 4), hits / len(test))
