"""Card transactions, a few of them fraudulent."""
import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

rng = np.random.default_rng(1)


def transactions(count, seed):
    rng = np.random.default_rng(seed)
    fraud = rng.random(count) < 0.03
    x = rng.normal(size=(count, 12))
    x[fraud, :4] += 0.9
    return torch.tensor(x, dtype=torch.float32), torch.tensor(fraud, dtype=torch.float32)


torch.manual_seed(0)
train_loader = DataLoader(TensorDataset(*transactions(4000, 10)), batch_size=100, shuffle=True)  # <- fault
test_loader = DataLoader(TensorDataset(*transactions(4000, 11)), batch_size=500)
model = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 1))
criterion = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)

for epoch in range(8):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in test_loader:
            hits += ((model(x).squeeze(1) > 0).float() == y).sum().item()
    print(f"epoch {epoch}: loss {loss.item():.4f} accuracy {hits / 4000:.4f}")
