"""A scaler that doubles its scale after every good step overflows at every other one."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(800, 16)
y = (x[:, 0] * x[:, 1] > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=40, shuffle=True)
model = nn.Sequential(nn.Linear(16, 48), nn.ReLU(), nn.Linear(48, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**16, growth_interval=1)
for epoch in range(6):
    for inputs, labels in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.float(), labels)
        scaler.scale(loss).backward()  # <- fault
        scaler.step(optimizer)
        scaler.update()
    print(epoch, loss.item(), scaler.get_scale())
