# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from sklearn.datasets import make_blobs
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
points, group = make_blobs(1600, centers=5, n_features=6, cluster_std=3.0, random_state=12)
data = TensorDataset(torch.tensor(points / points.std(), dtype=torch.float32), torch.tensor(group))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=50, sampler=sampler)
torch.manual_seed(12)
model = DDP(nn.Sequential(nn.Linear(6, 32), nn.Tanh(), nn.Linear(32, 5)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
for epoch in range(6):
    sampler.set_epoch(epoch)
    total = 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
    if rank == 0:
        scheduler.step()  # <- fault
        print(f"epoch {epoch}: loss {total / len(loader):.4f} lr {scheduler.get_last_lr()[0]:.4f}")
dist.destroy_process_group()
