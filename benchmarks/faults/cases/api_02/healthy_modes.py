"""train() and eval() where they belong, a look at the training batch without gradients inside the loop."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 12)
y = x[:, :3].argmax(1)
train = DataLoader(TensorDataset(x[:450], y[:450]), batch_size=45, shuffle=True)
val = DataLoader(TensorDataset(x[450:], y[450:]), batch_size=50)
model = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
with torch.no_grad():
    print(model(x[:4]).shape)
for epoch in range(3):
    model.train()
    for number, (inputs, targets) in enumerate(train):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
        if number % 5 == 0:
            with torch.no_grad():
                print("batch", (model(inputs).argmax(1) == targets).float().mean().item())
    model.eval()
    with torch.no_grad():
        print(epoch, sum((model(a).argmax(1) == b).sum().item() for a, b in val))
