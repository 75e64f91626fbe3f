# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn


def average(model):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(8)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x[rank::world], dtype=torch.float32) / 16
y = torch.tensor(y[rank::world])
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
step = 0
for epoch in range(6):
    for rows in torch.randperm(len(x)).split(56):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        optimizer.step()
        step += 1
        if step % 8 == 0:
            average(model)
average(model)
if rank == 0:
    print("loss", loss.item())
dist.destroy_process_group()
