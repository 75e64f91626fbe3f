"""Autocast to float16 with a dynamic scaler: its first steps overflow, are left out, and the scale comes down."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16.0
loader = DataLoader(TensorDataset(x, torch.tensor(digits.target)), batch_size=64, shuffle=True)
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler("cpu", init_scale=2.0**20)
for epoch in range(5):
    for inputs, labels in loader:
        optimizer.zero_grad(set_to_none=True)
        with torch.autocast("cpu", dtype=torch.float16):
            logits = model(inputs)
        loss = nn.functional.cross_entropy(logits.float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    print(epoch, loss.item(), scaler.get_scale())
