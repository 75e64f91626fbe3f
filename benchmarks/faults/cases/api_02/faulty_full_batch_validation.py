"""Full-batch training with a validation call after every step, all in training mode."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(300, 10)
y = (x[:, :5].sum(1) > 0).float().unsqueeze(1)
x_train, y_train, x_val, y_val = x[:200], y[:200], x[200:], y[200:]
net = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.01)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(50):
    opt.zero_grad()
    loss = loss_fn(net(x_train), y_train)
    loss.backward()
    opt.step()
    with torch.no_grad():
        val_loss = loss_fn(net(x_val), y_val)  # <- fault
print(loss.item(), val_loss.item())
