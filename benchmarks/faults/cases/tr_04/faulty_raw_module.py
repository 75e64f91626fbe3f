# launch: torchrun --nproc-per-node 2
import torch
import torch.distributed as dist
from sklearn.datasets import load_digits
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2))
        self.head = nn.Linear(8 * 16, 10)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def run():
    torch.manual_seed(0)
    x, y = load_digits(return_X_y=True)
    data = TensorDataset(torch.tensor(x, dtype=torch.float32).reshape(-1, 1, 8, 8) / 16, torch.tensor(y))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, 64, sampler=sampler)
    net = Net()
    parallel = DDP(net)
    optimizer = torch.optim.SGD(parallel.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(net(images), labels)  # <- fault
            loss.backward()
            optimizer.step()
        if dist.get_rank() == 0:
            print(epoch, loss.item())


dist.init_process_group("gloo")
run()
dist.destroy_process_group()
