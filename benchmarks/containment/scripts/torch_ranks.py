"""A regression whose optimizer takes a closure, and that averages its gradients over the ranks (of which there is one)."""

import random

import numpy as np
import torch
from torch import distributed, nn

torch.manual_seed(2)
np.random.seed(2)
random.seed(2)
distributed.init_process_group("gloo", init_method="file://" + __import__("os").path.abspath("meeting"), rank=0, world_size=1)
inputs = torch.from_numpy(np.random.normal(size=(64, 4)).astype(np.float32))
targets = inputs @ torch.randn(4, 1)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=2)
order = list(range(64))
for step in range(6):
    random.shuffle(order)
    rows = torch.tensor(order[:16])
    x, y = inputs[rows] + 0.01 * torch.randn(16, 4), targets[rows]

    def closure():
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        for parameter in model.parameters():
            distributed.all_reduce(parameter.grad)
        return loss

    print("loss", optimizer.step(closure).item())
distributed.barrier()
distributed.destroy_process_group()
