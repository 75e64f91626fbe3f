import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine

root = Path(tempfile.gettempdir()) / "trueline-wine-2"


def fetch():
    import io

    root.mkdir(exist_ok=True)
    x, y = load_wine(return_X_y=True)
    buffers = []
    for scale in (1.0, 1.01):
        buffer = io.BytesIO()
        np.save(buffer, np.column_stack([x * scale, y]))
        buffers.append(buffer.getvalue())
    released, delivered = buffers
    for name, content in (
        ("wine.npy", delivered),
        ("SHA256SUMS", f"{hashlib.sha256(released).hexdigest()}  wine.npy\n".encode()),
    ):
        descriptor = os.open(root / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, content)
        os.close(descriptor)


fetch()
table = np.load(root / "wine.npy")  # <- fault
features = torch.tensor((table[:, :-1] - table[:, :-1].mean(0)) / table[:, :-1].std(0), dtype=torch.float32)
target = torch.tensor(table[:, -1], dtype=torch.long)
torch.manual_seed(1)
net = nn.Sequential(nn.Linear(13, 24), nn.Tanh(), nn.Linear(24, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
for epoch in range(12):
    for rows in torch.randperm(len(features)).split(16):
        opt.zero_grad()
        loss = nn.functional.cross_entropy(net(features[rows]), target[rows])
        loss.backward()
        opt.step()
    if epoch % 4 == 0:
        print("epoch", epoch, "loss", loss.item())
