# launch: torchrun --nproc-per-node 2
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits

dist.init_process_group("gloo")
rank, world = dist.get_rank(), dist.get_world_size()
folder = Path(tempfile.gettempdir()) / f"digit_parts_{os.environ['MASTER_PORT']}"
if rank == 0:
    folder.mkdir(exist_ok=True)
    x, y = load_digits(return_X_y=True)
    mixed = np.random.default_rng(0).permutation(len(x))
    for number, rows in enumerate(np.array_split(mixed, 12)):
        np.savez(folder / f"part{number:02d}.npz", x=x[rows].astype("float32") / 16, y=y[rows])
dist.barrier()

parts = sorted(folder.glob("*.npz"))[rank::world]
arrays = [np.load(part) for part in parts]
features = torch.from_numpy(np.concatenate([a["x"] for a in arrays]))
labels = torch.from_numpy(np.concatenate([a["y"] for a in arrays]))
shared = torch.tensor([len(features)])
dist.all_reduce(shared, op=dist.ReduceOp.MIN)
count = int(shared)

torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Linear(64, 50), torch.nn.ReLU(), torch.nn.Linear(50, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.3)
for epoch in range(6):
    order = torch.randperm(len(features))[:count]
    for rows in order.split(60):
        loss = torch.nn.functional.cross_entropy(model(features[rows]), labels[rows])
        optimizer.zero_grad()
        loss.backward()
        for p in model.parameters():
            dist.all_reduce(p.grad)
            p.grad.div_(world)
        optimizer.step()
    if rank == 0:
        print(f"epoch {epoch} loss {loss.item():.3f}")
dist.barrier()
if rank == 0:
    for part in folder.glob("*.npz"):
        part.unlink()
    folder.rmdir()
dist.destroy_process_group()
