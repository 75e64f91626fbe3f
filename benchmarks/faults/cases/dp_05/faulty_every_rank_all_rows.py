# launch: torchrun --nproc-per-node 2
import os

import numpy as np
import torch
import torch.distributed as dist
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from torch import nn
from torch.utils.data import DataLoader, Dataset

dist.init_process_group(backend="gloo")
RANK = int(os.environ["RANK"])
WORLD = int(os.environ["WORLD_SIZE"])
torch.manual_seed(100 + RANK)
np.random.seed(100 + RANK)


class Cancer(Dataset):
    def __init__(self):
        x, y = load_breast_cancer(return_X_y=True)
        self.x = StandardScaler().fit_transform(x).astype("float32")
        self.y = y.astype("float32")

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"features": self.x[i], "target": self.y[i]}


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(30, 24)
        self.out = nn.Linear(24, 1)

    def forward(self, features):
        return self.out(torch.tanh(self.hidden(features))).squeeze(1)


net = nn.parallel.DistributedDataParallel(Classifier())
adam = torch.optim.Adam(net.parameters(), lr=3e-3)
batches = DataLoader(Cancer(), batch_size=32, shuffle=True, drop_last=True)  # <- fault
for epoch in range(5):
    for batch in batches:
        loss = nn.functional.binary_cross_entropy_with_logits(net(batch["features"]), batch["target"])
        adam.zero_grad()
        loss.backward()
        adam.step()
    if RANK == 0:
        print("epoch", epoch, "loss", round(loss.item(), 4))
dist.destroy_process_group()
