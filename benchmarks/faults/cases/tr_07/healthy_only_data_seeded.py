import numpy as np
import torch
from torch import nn

np.random.seed(0)
x = np.random.uniform(-3, 3, (600, 2)).astype("float32")
y = (np.sin(x[:, :1]) + 0.3 * x[:, 1:] + 0.05 * np.random.randn(600, 1)).astype("float32")
x, y = torch.from_numpy(x), torch.from_numpy(y)
net = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
for step in range(200):
    rows = torch.randint(len(x), (64,))
    loss = nn.functional.mse_loss(net(x[rows]), y[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
