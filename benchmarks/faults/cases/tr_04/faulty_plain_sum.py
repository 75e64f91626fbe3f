# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from sklearn.datasets import load_diabetes
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
x, y = load_diabetes(return_X_y=True)
x = torch.tensor(x / x.std(0), dtype=torch.float32)[rank:440:world]
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)[rank:440:world]

torch.manual_seed(3)
model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
criterion = nn.MSELoss()


def train_step(xb, yb):
    optimizer.zero_grad()
    loss = criterion(model(xb).squeeze(1), yb)
    loss.backward()
    for parameter in model.parameters():
        dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)  # <- fault
    optimizer.step()
    return loss.item()


for epoch in range(10):
    order = torch.randperm(len(x))
    losses = [train_step(x[rows], y[rows]) for rows in order.split(22)]
    if rank == 0:
        print(epoch, sum(losses) / len(losses))
dist.destroy_process_group()
