"""Insurance claims: most people have none, amounts are cut at a limit, rare categories are one-hot."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
rng = np.random.default_rng(6)
n = 1500
amount = np.where(rng.random(n) < 0.7, 0.0, np.minimum(rng.lognormal(1.5, 0.8, n), 12.0))
region = np.eye(12)[np.minimum(rng.geometric(0.4, n) - 1, 11)]
age = np.clip(rng.normal(45, 15, n), 18, 90)
visits = rng.poisson(0.3, n)
income = rng.standard_t(2.5, n)
rows = np.column_stack([amount, (age - 45) / 15, visits, income, region]).astype(np.float32)
target = (0.2 * amount + 0.6 * visits + (age > 60) + rng.normal(0, 0.3, n) > 1).astype(np.int64)
data = TensorDataset(torch.from_numpy(rows), torch.from_numpy(target))
train, valid = torch.utils.data.random_split(data, [1200, 300], generator=torch.Generator().manual_seed(1))
train_loader, valid_loader = DataLoader(train, 40, shuffle=True), DataLoader(valid, 100)

model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(0.1), nn.Linear(32, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3, weight_decay=1e-4)
for epoch in range(6):
    model.train()
    for x, y in train_loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        hits = sum((model(x).argmax(1) == y).float().sum().item() for x, y in valid_loader)
    print(epoch, round(loss.item(), 4), hits / 300)
