# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import load_digits


def sync(model):
    world = float(dist.get_world_size())
    for param in model.parameters():
        dist.all_reduce(param.grad.data, op=dist.ReduceOp.SUM)
        param.grad.data /= world


class MLP(torch.nn.Module):
    def __init__(self, width=40):
        super().__init__()
        self.first = torch.nn.Linear(64, width)
        self.second = torch.nn.Linear(width, 10)

    def forward(self, x):
        return self.second(F.relu(self.first(x)))


dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
torch.manual_seed(1234 + rank)  # <- fault
x, y = load_digits(return_X_y=True)
x = torch.tensor(x[rank::world], dtype=torch.float32) / 16
y = torch.tensor(y[rank::world])
model = MLP()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.5)
for epoch in range(4):
    order = torch.randperm(len(x))
    for begin in range(0, 896, 64):
        rows = order[begin : begin + 64]
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x[rows]), y[rows])
        loss.backward()
        sync(model)
        optimizer.step()
    if rank == 0:
        print("epoch", epoch, "loss", loss.item())
dist.destroy_process_group()
