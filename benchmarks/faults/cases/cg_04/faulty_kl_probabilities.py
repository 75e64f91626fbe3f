"""Distillation with kl_div of two softmax outputs: the input must be log-probabilities."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(6)
teacher = nn.Sequential(nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 5)).eval()
student = nn.Linear(10, 5)
optimizer = torch.optim.Adam(student.parameters(), lr=1e-2)
for step in range(40):
    x = torch.randn(32, 10)
    with torch.no_grad():
        wanted = F.softmax(teacher(x) / 2.0, dim=1)
    given = F.softmax(student(x) / 2.0, dim=1)  # <- fault
    loss = F.kl_div(given, wanted, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
