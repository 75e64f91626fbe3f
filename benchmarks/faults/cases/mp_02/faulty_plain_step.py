"""The loss goes through the scaler, and the optimizer steps without it."""

import torch
from torch import nn

torch.manual_seed(0)
x = torch.randn(512, 12)
y = x[:, :3].argmax(1)
net = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 3))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
for step in range(150):
    rows = torch.randint(0, 512, (64,))
    optimizer.zero_grad()
    with torch.autocast("cpu", dtype=torch.float16):
        logits = net(x[rows])
    loss = nn.functional.cross_entropy(logits.float(), y[rows])
    scaler.scale(loss).backward()
    optimizer.step()  # <- fault
print(loss.item())
