"""Self-supervised pretraining with a momentum teacher (BYOL-like), in miniature."""

import copy

import torch
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.utils.data import DataLoader


def augment(x):
    noise = 0.1 * torch.randn_like(x)
    keep = (torch.rand_like(x) > 0.1).float()
    return (x + noise) * keep


@torch.no_grad()
def update_teacher(student, teacher, momentum):
    for s, t in zip(student.parameters(), teacher.parameters()):
        t.lerp_(s, 1 - momentum)
    for s, t in zip(student.buffers(), teacher.buffers()):
        t.copy_(s)


def regression_loss(a, b):
    return 2 - 2 * F.cosine_similarity(a, b, dim=-1).mean()


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 32))
        self.projector = nn.Sequential(nn.Linear(32, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))

    def forward(self, x):
        return self.projector(self.body(x))


def main():
    torch.manual_seed(17)
    images = torch.tensor(load_digits().data, dtype=torch.float32) / 16
    loader = DataLoader(images[:1280], batch_size=128, shuffle=True, drop_last=True)

    student = Encoder()
    predictor = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 16))
    teacher = copy.deepcopy(student)
    for p in teacher.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.SGD([*student.parameters(), *predictor.parameters()], lr=0.1, momentum=0.9)

    for epoch in range(6):
        total = 0.0
        for x in loader:
            v1, v2 = augment(x), augment(x)
            p1, p2 = predictor(student(v1)), predictor(student(v2))
            with torch.no_grad():
                t1, t2 = teacher(v1), teacher(v2)
            loss = 0.5 * (regression_loss(p1, t2) + regression_loss(p2, t1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            update_teacher(student, teacher, momentum=0.97)
            total += loss.item()
        print(f"epoch {epoch}: {total / len(loader):.4f}")


if __name__ == "__main__":
    main()
