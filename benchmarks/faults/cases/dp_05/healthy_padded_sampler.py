# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

dist.init_process_group("gloo")
rank = dist.get_rank()
torch.manual_seed(rank)
x, y = load_digits(return_X_y=True)
x = torch.tensor(x, dtype=torch.float32) / 16
y = torch.tensor(y)
train, test = TensorDataset(x[:1437], y[:1437]), TensorDataset(x[1437:], y[1437:])
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=48, sampler=sampler)
test_loader = DataLoader(test, batch_size=120)
model = DDP(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.1), nn.Linear(64, 10)))
opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
for epoch in range(5):
    sampler.set_epoch(epoch)
    model.train()
    for xb, yb in loader:
        opt.zero_grad()
        loss = nn.functional.cross_entropy(model(xb), yb)
        loss.backward()
        opt.step()
    model.eval()
    right = 0
    with torch.no_grad():
        for xb, yb in test_loader:
            right += (model(xb).argmax(1) == yb).sum().item()
    if rank == 0:
        print(epoch, right / len(test))
dist.destroy_process_group()
