"""A regression MLP with momentum, weight decay, clipping and a learning-rate schedule."""

import torch
from probe import report, seed_everything
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

seed_everything(11)
x = torch.randn(512, 10)
y = (x[:, :3].prod(dim=1, keepdim=True) + x.sum(dim=1, keepdim=True)).tanh()
train_loader = DataLoader(TensorDataset(x[:384], y[:384]), batch_size=32, shuffle=True)
test_loader = DataLoader(TensorDataset(x[384:], y[384:]), batch_size=64)

model = nn.Sequential(nn.Linear(10, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
loss_fn = nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=6)

for epoch in range(6):
    model.train()
    for inputs, targets in train_loader:
        optimizer.zero_grad()
        loss = loss_fn(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        print("loss", repr(loss.item()))
    scheduler.step()
    model.eval()
    with torch.no_grad():
        print("test", epoch, repr(sum(loss_fn(model(a), b).item() for a, b in test_loader)), scheduler.get_last_lr())

report(model, optimizer)
