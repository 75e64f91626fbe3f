import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def worker(rank, world, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=world)
    torch.manual_seed(30 + rank)
    x, y = load_wine(return_X_y=True)
    data = TensorDataset(torch.tensor(scale(x)).float(), torch.tensor(y))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=10, sampler=sampler)
    model = DDP(nn.Sequential(nn.Linear(13, 24), nn.ReLU(), nn.Linear(24, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for epoch in range(8):
        sampler.set_epoch(epoch)
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
    if rank == 0:
        print("loss", loss.item())
    dist.destroy_process_group()


if __name__ == "__main__":
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    mp.spawn(worker, args=(2, free), nprocs=2)
