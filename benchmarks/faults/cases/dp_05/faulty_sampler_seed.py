# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler


def build_loader(rank, batch_size=4):
    x, y = load_wine(return_X_y=True)
    data = TensorDataset(torch.tensor(scale(x)).float(), torch.tensor(y))
    sampler = DistributedSampler(data, shuffle=True, seed=17 * rank)  # <- fault
    return DataLoader(data, batch_size=batch_size, sampler=sampler), sampler


def train(rank):
    torch.manual_seed(7)
    loader, sampler = build_loader(rank)
    model = DDP(nn.Sequential(nn.Linear(13, 20), nn.ReLU(), nn.Linear(20, 3)))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    loss_fn = nn.CrossEntropyLoss()
    for epoch in range(8):
        sampler.set_epoch(epoch)
        seen, right = 0, 0
        for x, y in loader:
            scores = model(x)
            loss = loss_fn(scores, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            seen += len(y)
            right += (scores.argmax(1) == y).sum().item()
        if rank == 0:
            print(f"{epoch} accuracy {right / seen:.3f}")


if __name__ == "__main__":
    dist.init_process_group("gloo")
    train(dist.get_rank())
    dist.destroy_process_group()
