# launch: torchrun --nproc-per-node 2
import contextlib

import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

ACCUMULATE = 4


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(13)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=16, sampler=sampler, drop_last=True)
    model = DDP(nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 10)))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for number, (xb, yb) in enumerate(loader, 1):
            last = number % ACCUMULATE == 0
            with contextlib.nullcontext() if last else model.no_sync():
                loss = nn.functional.cross_entropy(model(xb), yb) / ACCUMULATE
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
        if dist.get_rank() == 0:
            print(epoch, loss.item() * ACCUMULATE)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
