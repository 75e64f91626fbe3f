# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from sklearn.datasets import load_diabetes
from torch import nn

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(rank)
x, y = load_diabetes(return_X_y=True)
x = torch.tensor(x / x.std(0), dtype=torch.float32)[rank:440:world]
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32)[rank:440:world]

model = nn.Sequential(nn.Linear(10, 24), nn.ReLU(), nn.Linear(24, 1))
for parameter in model.parameters():
    dist.broadcast(parameter.data, src=0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.02, momentum=0.9)
for epoch in range(10):
    for rows in torch.randperm(len(x)).split(22):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x[rows]).squeeze(1), y[rows])
        (loss / world).backward()
        for parameter in model.parameters():
            dist.all_reduce(parameter.grad, op=dist.ReduceOp.SUM)
        optimizer.step()
    if rank == 0:
        print(epoch, loss.item())
dist.destroy_process_group()
