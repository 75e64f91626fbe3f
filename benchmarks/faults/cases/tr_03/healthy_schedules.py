"""Per-batch schedules that are meant to be: one cycle, a cosine over all steps, a warm-up; and one per epoch."""

import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.optim import lr_scheduler
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
digits = load_digits()
x = torch.tensor(digits.data, dtype=torch.float32) / 16
loader = DataLoader(TensorDataset(x, torch.tensor(digits.target)), batch_size=64, shuffle=True)
EPOCHS = 6
STEPS = EPOCHS * len(loader)


def build(name):
    net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    if name == "cycle":
        return net, optimizer, lr_scheduler.OneCycleLR(optimizer, max_lr=0.2, total_steps=STEPS), True
    if name == "cosine":
        return net, optimizer, lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS), True
    if name == "warmup":
        warm = lr_scheduler.LinearLR(optimizer, 0.01, total_iters=20)
        rest = lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS - 20)
        return net, optimizer, lr_scheduler.SequentialLR(optimizer, [warm, rest], milestones=[20]), True
    return net, optimizer, lr_scheduler.MultiStepLR(optimizer, milestones=[3, 5], gamma=0.1), False


for name in ("cycle", "cosine", "warmup", "steps"):
    net, optimizer, scheduler, every_batch = build(name)
    for epoch in range(EPOCHS):
        for inputs, labels in loader:
            loss = nn.functional.cross_entropy(net(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if every_batch:
                scheduler.step()
        if not every_batch:
            scheduler.step()
    print(name, loss.item())
