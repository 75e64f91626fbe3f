"""Knowledge distillation: a small student learns from the softened outputs of a trained teacher."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader, TensorDataset

T, ALPHA = 4.0, 0.7
torch.manual_seed(0)

digits = load_digits()
order = torch.randperm(len(digits.target))
X = torch.tensor(digits.data, dtype=torch.float32)[order] / 16
y = torch.tensor(digits.target)[order]
train_ds, test_ds = TensorDataset(X[:1400], y[:1400]), TensorDataset(X[1400:], y[1400:])


def mlp(*sizes):
    layers = []
    for i, (a, b) in enumerate(zip(sizes, sizes[1:])):
        layers.append(nn.Linear(a, b))
        if i < len(sizes) - 2:
            layers += [nn.ReLU(), nn.Dropout(0.1)]
    return nn.Sequential(*layers)


def test(net):
    net.eval()
    with torch.no_grad():
        return sum((net(xb).argmax(1) == yb).sum().item() for xb, yb in DataLoader(test_ds, batch_size=200)) / len(test_ds)


def train_teacher(net, epochs):
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for _ in range(epochs):
        net.train()
        for xb, yb in DataLoader(train_ds, batch_size=50, shuffle=True):
            opt.zero_grad()
            F.cross_entropy(net(xb), yb).backward()
            opt.step()


def distill(teacher, student, epochs):
    teacher.eval()
    opt = torch.optim.Adam(student.parameters(), lr=3e-3)
    for epoch in range(epochs):
        student.train()
        for xb, yb in DataLoader(train_ds, batch_size=50, shuffle=True):
            with torch.no_grad():
                soft = F.softmax(teacher(xb) / T, dim=1)
            logits = student(xb)
            kd = F.kl_div(F.log_softmax(logits / T, dim=1), soft, reduction="batchmean") * T * T
            loss = ALPHA * kd + (1 - ALPHA) * F.cross_entropy(logits, yb)
            opt.zero_grad()
            loss.backward()
            opt.step()
        print("distill", epoch, round(loss.item(), 4), "test", round(test(student), 3))


teacher = mlp(64, 128, 64, 10)
train_teacher(teacher, 6)
print("teacher", round(test(teacher), 3))
distill(teacher, mlp(64, 16, 10), 6)
