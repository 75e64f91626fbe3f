# launch: torchrun --nproc-per-node 2
import argparse
import os

import torch
import torch.distributed as dist
import torch.nn.functional as F
from sklearn.datasets import make_moons
from torch import nn, optim
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def parse():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--node-rank", type=int, default=0)
    parser.add_argument("--lr", type=float, default=0.05)
    return parser.parse_args()


args = parse()
dist.init_process_group("gloo")
world = int(os.environ["WORLD_SIZE"])
torch.manual_seed(3)
points, side = make_moons(1500, noise=0.15, random_state=3)
train = TensorDataset(torch.tensor(points, dtype=torch.float32), torch.tensor(side))
sampler = DistributedSampler(train, num_replicas=world, rank=args.node_rank)  # <- fault
loader = DataLoader(train, sampler=sampler, batch_size=50)
model = DistributedDataParallel(nn.Sequential(nn.Linear(2, 32), nn.GELU(), nn.Linear(32, 2)))
opt = optim.SGD(model.parameters(), lr=args.lr, momentum=0.9)
for epoch in range(args.epochs):
    sampler.set_epoch(epoch)
    for x, y in loader:
        opt.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        opt.step()
if dist.get_rank() == 0:
    print("final loss", loss.item())
dist.destroy_process_group()
