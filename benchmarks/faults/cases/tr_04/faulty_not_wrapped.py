# launch: torchrun --nproc-per-node 2
import os

import torch
import torch.distributed as dist
import torch.nn as nn
from sklearn.datasets import load_wine
from sklearn.preprocessing import StandardScaler
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def get_model():
    return nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 3))  # <- fault


def main():
    dist.init_process_group("gloo")
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.manual_seed(1)
    x, y = load_wine(return_X_y=True)
    dataset = TensorDataset(torch.tensor(StandardScaler().fit_transform(x)).float(), torch.tensor(y))
    sampler = DistributedSampler(dataset, shuffle=True)
    loader = DataLoader(dataset, batch_size=8, sampler=sampler)
    model = get_model()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(10):
        sampler.set_epoch(epoch)
        running = torch.zeros(1)
        for xb, yb in loader:
            optimizer.zero_grad()
            loss = loss_fn(model(xb), yb)
            loss.backward()
            optimizer.step()
            running += loss.detach()
        dist.all_reduce(running)
        if local_rank == 0:
            print(f"epoch {epoch} loss {running.item() / (2 * len(loader)):.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
