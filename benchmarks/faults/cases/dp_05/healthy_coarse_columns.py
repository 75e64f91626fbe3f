# launch: torchrun --nproc-per-node 2
import numpy as np
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

rng = np.random.default_rng(8)
answers = rng.integers(0, 4, size=(1200, 5))
bought = (answers @ np.array([2, -1, 1, 0, -2]) + rng.normal(0, 1, 1200) > 0).astype("float32")

dist.init_process_group("gloo")
torch.manual_seed(0)
survey = TensorDataset(torch.tensor(answers / 3.0, dtype=torch.float32), torch.tensor(bought))
sampler = DistributedSampler(survey, drop_last=True)
loader = DataLoader(survey, batch_size=20, sampler=sampler)
model = DDP(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.binary_cross_entropy_with_logits(model(x).squeeze(1), y)
        loss.backward()
        optimizer.step()
    if dist.get_rank() == 0:
        print(epoch, loss.item())
dist.destroy_process_group()
