# launch: torchrun --nproc-per-node 2
import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_diabetes

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
torch.manual_seed(0)

X, t = load_diabetes(return_X_y=True)
X = (X / X.std(0)).astype(np.float32)
t = ((t - t.mean()) / t.std()).astype(np.float32)
rng = np.random.default_rng(2024 + rank)
rows = rng.permutation(len(X))[: len(X) // size]
X, t = torch.from_numpy(X[rows]), torch.from_numpy(t[rows])

net = torch.nn.Sequential(torch.nn.Linear(10, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
sgd = torch.optim.SGD(net.parameters(), lr=0.05)


def average_gradients():
    for p in net.parameters():
        dist.all_reduce(p.grad, op=dist.ReduceOp.SUM)
        p.grad /= size


for epoch in range(12):
    order = torch.randperm(len(X))
    for start in range(0, len(X), 17):
        pick = order[start : start + 17]
        out = net(X[pick]).squeeze(-1)  # <- fault
        loss = ((out - t[pick]) ** 2).mean()
        sgd.zero_grad()
        loss.backward()
        average_gradients()
        sgd.step()
    if rank == 0 and epoch % 4 == 0:
        print(epoch, float(loss))
dist.destroy_process_group()
