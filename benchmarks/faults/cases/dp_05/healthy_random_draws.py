# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import load_diabetes
from torch.nn.parallel import DistributedDataParallel as DDP


class Sampler:
    """Endless batches, drawn with replacement; every rank has a stream of its own."""

    def __init__(self, x, y, batch, rank):
        self.x, self.y, self.batch = x, y, batch
        self.generator = torch.Generator().manual_seed(900 + rank)

    def __next__(self):
        rows = torch.randint(len(self.x), (self.batch,), generator=self.generator)
        return self.x[rows], self.y[rows]


dist.init_process_group("gloo")
torch.manual_seed(5)
x, y = load_diabetes(return_X_y=True)
x = torch.tensor(x / x.std(0), dtype=torch.float32)
y = torch.tensor((y - y.mean()) / y.std(), dtype=torch.float32).unsqueeze(1)
draws = Sampler(x, y, 40, dist.get_rank())
model = DDP(nn.Sequential(nn.Linear(10, 32), nn.SiLU(), nn.Linear(32, 1)))
opt = torch.optim.Adam(model.parameters(), lr=5e-3)
for step in range(120):
    xb, yb = next(draws)
    loss = nn.functional.mse_loss(model(xb), yb)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 30 == 0 and dist.get_rank() == 0:
        print(step, loss.item())
dist.destroy_process_group()
