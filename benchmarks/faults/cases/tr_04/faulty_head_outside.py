# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
import torch.nn as nn
import torch.nn.functional as F
from sklearn.datasets import load_digits
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Encoder(nn.Module):
    def __init__(self, dim=24):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, dim))

    def forward(self, x):
        return F.normalize(self.net(x), dim=1)


class CosineClassifier(nn.Module):
    def __init__(self, dim, classes, scale=12.0):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(classes, dim))
        self.scale = scale

    def forward(self, z):
        return self.scale * F.linear(z, F.normalize(self.weight, dim=1))


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(6)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x, dtype=torch.float32) / 16, torch.tensor(y))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=64, sampler=sampler, drop_last=True)
    encoder = DDP(Encoder())
    classifier = CosineClassifier(24, 10)  # <- fault
    optimizer = torch.optim.Adam([*encoder.parameters(), *classifier.parameters()], lr=2e-3)
    for epoch in range(4):
        sampler.set_epoch(epoch)
        for xb, yb in loader:
            loss = F.cross_entropy(classifier(encoder(xb)), yb)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(f"{epoch}: {loss.item():.4f}")
    dist.destroy_process_group()


main()
