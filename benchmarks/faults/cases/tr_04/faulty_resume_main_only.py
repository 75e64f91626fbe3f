# launch: torchrun --nproc-per-node 2
import io

import torch
import torch.distributed as dist
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def network():
    return nn.Sequential(nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 2))


def pretrained_state():
    torch.manual_seed(99)
    buffer = io.BytesIO()
    torch.save(network().state_dict(), buffer)
    buffer.seek(0)
    return torch.load(buffer)


dist.init_process_group("gloo")
state = pretrained_state()
torch.manual_seed(0)
x, y = load_breast_cancer(return_X_y=True)
data = TensorDataset(torch.tensor(scale(x)).float(), torch.tensor(y))
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=32, sampler=sampler)
model = DistributedDataParallel(network())
if dist.get_rank() == 0:
    model.module.load_state_dict(state)  # <- fault
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(6):
    sampler.set_epoch(epoch)
    for xb, yb in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(epoch, loss.item())
dist.destroy_process_group()
