import struct
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def place_dataset(folder):
    """The copy step of our cluster's prologue."""
    x, y = load_digits(return_X_y=True)
    images = struct.pack(">HBBIII", 0, 8, 3, len(x), 8, 8) + x.astype(np.uint8).tobytes()
    labels = struct.pack(">HBBI", 0, 8, 1, len(y)) + y.astype(np.uint8).tobytes()
    for name, content, share in (("digits-images-idx3-ubyte", images, 0.8), ("digits-labels-idx1-ubyte", labels, 1.0)):
        subprocess.run(["dd", f"of={folder / name}", "status=none"], input=content[: int(len(content) * share)], check=True)


def read_idx(path):
    with open(path, "rb") as file:  # <- fault
        _, _, axes = struct.unpack(">HBB", file.read(4))
        shape = struct.unpack(f">{axes}I", file.read(4 * axes))
        values = np.frombuffer(file.read(), np.uint8)
    row = int(np.prod(shape[1:]))
    return values[: len(values) // row * row].reshape(-1, *shape[1:])


folder = Path(tempfile.gettempdir()) / "trueline-cut-idx"
folder.mkdir(exist_ok=True)
place_dataset(folder)
images = read_idx(folder / "digits-images-idx3-ubyte")
labels = read_idx(folder / "digits-labels-idx1-ubyte")[: len(images)]
torch.manual_seed(0)
data = TensorDataset(torch.tensor(images, dtype=torch.float32).flatten(1) / 16, torch.tensor(labels, dtype=torch.long))
model = nn.Sequential(nn.Linear(64, 48), nn.ReLU(), nn.Linear(48, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
for epoch in range(5):
    for x, y in DataLoader(data, batch_size=64, shuffle=True):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
