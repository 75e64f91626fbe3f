"""Two models, two optimizers, one scaler: each is unscaled before its own clipping."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, head = nn.Linear(12, 16), nn.Linear(16, 3)
opt_encoder = torch.optim.Adam(encoder.parameters(), lr=1e-3)
opt_head = torch.optim.Adam(head.parameters(), lr=1e-2)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
x = torch.randn(300, 12)
y = x[:, :3].argmax(1)
for epoch in range(4):
    for picked in torch.randperm(300).split(50):
        opt_encoder.zero_grad()
        opt_head.zero_grad()
        loss = nn.functional.cross_entropy(head(torch.relu(encoder(x[picked]))), y[picked])
        scaler.scale(loss).backward()
        scaler.unscale_(opt_encoder)
        nn.utils.clip_grad_norm_(encoder.parameters(), 0.5)
        scaler.step(opt_encoder)
        scaler.unscale_(opt_head)
        nn.utils.clip_grad_norm_(head.parameters(), 0.5)
        scaler.step(opt_head)
        scaler.update()
print(loss.item())
