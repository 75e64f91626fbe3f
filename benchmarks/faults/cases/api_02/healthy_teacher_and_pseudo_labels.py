"""Mean teacher with pseudo-labels: calls without gradients in training mode as part of every step."""

import copy

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(600, 10)
y = x[:, :3].argmax(1)
labelled = DataLoader(TensorDataset(x[:200], y[:200]), batch_size=20, shuffle=True)
unlabelled = DataLoader(TensorDataset(x[200:500]), batch_size=30, shuffle=True)
student = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 3))
teacher = copy.deepcopy(student)
optimizer = torch.optim.Adam(student.parameters(), lr=3e-3)
for epoch in range(3):
    student.train()
    for (inputs, targets), (extra,) in zip(labelled, unlabelled):
        with torch.no_grad():
            goal = teacher(extra + 0.1 * torch.randn_like(extra)).softmax(1)
            guess = student(extra + 0.1 * torch.randn_like(extra)).argmax(1)
        strong = student(extra + 0.3 * torch.randn_like(extra))
        loss = F.cross_entropy(student(inputs), targets) + 0.1 * F.cross_entropy(strong, guess) + 0.1 * F.mse_loss(strong.softmax(1), goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), student.parameters()):
                slow.lerp_(fast, 0.05)
    student.eval()
    with torch.no_grad():
        print(epoch, (student(x[500:]).argmax(1) == y[500:]).float().mean().item())
