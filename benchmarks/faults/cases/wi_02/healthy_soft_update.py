"""Mean teacher on digits: the teacher's weights follow the student's slowly; a few labels, many pictures without."""
import copy

import torch
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch import nn

torch.manual_seed(2)
digits = load_digits()
x = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
y = torch.tensor(digits.target)
order = torch.randperm(len(x))
labelled, unlabelled, held = order[:300], order[300:1400], order[1400:]

student = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(512, 10)
)
teacher = copy.deepcopy(student)
for parameter in teacher.parameters():
    parameter.requires_grad_(False)
optimizer = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.9)


def follow(rate=0.05):
    slow, fast = teacher.state_dict(), student.state_dict()
    for name in slow:
        slow[name].mul_(1 - rate).add_(fast[name], alpha=rate)
    teacher.load_state_dict(slow)


best, best_state = 0.0, None
for epoch in range(30):
    for rows in labelled[torch.randperm(len(labelled))].split(50):
        others = unlabelled[torch.randint(len(unlabelled), (100,))]
        noisy = x[others] + 0.1 * torch.randn_like(x[others])
        with torch.no_grad():
            told = F.softmax(teacher(x[others]), dim=1)
        loss = F.cross_entropy(student(x[rows]), y[rows]) + 0.5 * F.mse_loss(F.softmax(student(noisy), dim=1), told)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        follow()
    with torch.no_grad():
        accuracy = (teacher(x[held]).argmax(1) == y[held]).float().mean().item()
    if accuracy > best:
        best, best_state = accuracy, copy.deepcopy(teacher.state_dict())
    if epoch % 5 == 4:
        print(epoch + 1, round(loss.item(), 4), round(accuracy, 4))
teacher.load_state_dict(best_state)
