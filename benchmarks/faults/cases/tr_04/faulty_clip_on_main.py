# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
is_main = dist.get_rank() == 0
g = torch.Generator().manual_seed(21)
series = torch.cumsum(torch.randn(1200, 12, 3, generator=g) * 0.3, dim=1)
target = series[:, -4:].mean(dim=(1, 2))
data = TensorDataset(series, target)
sampler = DistributedSampler(data, shuffle=True, seed=4)
loader = DataLoader(data, batch_size=40, sampler=sampler)


class Forecaster(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(3, 24, batch_first=True)
        self.out = nn.Linear(24, 1)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.out(states[:, -1]).squeeze(-1)


torch.manual_seed(4)
model = DDP(Forecaster())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(4):
    sampler.set_epoch(epoch)
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        if is_main:
            norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.05)  # <- fault
        optimizer.step()
    if is_main:
        print(epoch, loss.item(), float(norm))
dist.destroy_process_group()
