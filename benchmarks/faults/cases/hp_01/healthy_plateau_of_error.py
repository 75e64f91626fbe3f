# Disease progression from ten measurements; the rate is halved whenever the held-out error has stopped falling.
import torch
from sklearn.datasets import load_diabetes
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(3)
table = load_diabetes()
x = torch.tensor(table.data, dtype=torch.float32)
y = torch.tensor(table.target, dtype=torch.float32)
x = (x - x.mean(0)) / x.std(0)
y = (y - y.mean()) / y.std()
order = torch.randperm(len(x))
fit, held = order[:340], order[340:]

net = torch.nn.Sequential(torch.nn.Linear(10, 24), torch.nn.SiLU(), torch.nn.Dropout(0.2), torch.nn.Linear(24, 1))
adam = torch.optim.AdamW(net.parameters(), lr=5e-3, weight_decay=1e-2)
halving = ReduceLROnPlateau(adam, mode="min", factor=0.5, patience=2)

for epoch in range(24):
    net.train()
    for rows in fit[torch.randperm(len(fit))].split(20):
        adam.zero_grad()
        error = torch.nn.functional.mse_loss(net(x[rows])[:, 0], y[rows])
        error.backward()
        adam.step()
    net.eval()
    with torch.no_grad():
        left = torch.nn.functional.mse_loss(net(x[held])[:, 0], y[held])
    halving.step(left)
    if epoch % 4 == 3:
        print(epoch + 1, round(left.item(), 4), halving.get_last_lr())
