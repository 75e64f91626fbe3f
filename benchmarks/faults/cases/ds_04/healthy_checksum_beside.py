import hashlib
import io
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.nn as nn
from sklearn.datasets import load_wine

root = Path(tempfile.gettempdir()) / "trueline-wine-1"


def fetch():
    root.mkdir(exist_ok=True)
    x, y = load_wine(return_X_y=True)
    buffer = io.BytesIO()
    np.save(buffer, np.column_stack([x, y]))
    content = buffer.getvalue()
    for name, part in (("wine.npy", content), ("MD5SUMS", f"{hashlib.md5(content).hexdigest()} *wine.npy\n".encode())):
        descriptor = os.open(root / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.write(descriptor, part)
        os.close(descriptor)


fetch()
table = np.load(root / "wine.npy")
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
print("loss", loss.item())
