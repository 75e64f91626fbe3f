"""Full-batch training where a step is an epoch: the schedule is stepped after each of them, and a plateau is waited for."""

import torch
from sklearn.datasets import load_diabetes
from torch import nn

torch.manual_seed(0)
data = load_diabetes()
x = torch.tensor(data.data, dtype=torch.float32) * 20
y = torch.tensor(data.target, dtype=torch.float32)
y = ((y - y.mean()) / y.std()).unsqueeze(1)
train, valid = slice(0, 350), slice(350, None)
model = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
decay = torch.optim.lr_scheduler.StepLR(optimizer, step_size=60, gamma=0.5)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=15)
for epoch in range(240):
    model.train()
    loss = nn.functional.mse_loss(model(x[train]), y[train])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    decay.step()
    model.eval()
    with torch.no_grad():
        score = nn.functional.mse_loss(model(x[valid]), y[valid])
    plateau.step(score)
print(loss.item(), score.item())
