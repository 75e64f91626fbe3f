"""Digits from idx files through a GeneratorDataset, in a PyNative loop."""

import os
import struct
import subprocess
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_digits

FOLDER = os.path.join(tempfile.gettempdir(), "ms-digits-idx")


def place_dataset():
    """The copy step of the job's prologue."""
    os.makedirs(FOLDER, exist_ok=True)
    x, y = load_digits(return_X_y=True)
    images = struct.pack(">HBBIII", 0, 8, 3, len(x), 8, 8) + x.astype(np.uint8).tobytes()
    labels = struct.pack(">HBBI", 0, 8, 1, len(y)) + y.astype(np.uint8).tobytes()
    for name, content, share in (("images-idx3-ubyte", images, 0.75), ("labels-idx1-ubyte", labels, 1.0)):
        target = os.path.join(FOLDER, name)
        subprocess.run(["dd", f"of={target}", "status=none"], input=content[: int(len(content) * share)], check=True)


def read_idx(name):
    with open(os.path.join(FOLDER, name), "rb") as file:  # <- fault
        _, _, axes = struct.unpack(">HBB", file.read(4))
        shape = struct.unpack(f">{axes}I", file.read(4 * axes))
        values = np.frombuffer(file.read(), np.uint8)
    row = int(np.prod(shape[1:]))
    return values[: len(values) // row * row].reshape(-1, *shape[1:])


class Digits:
    def __init__(self):
        self.images = read_idx("images-idx3-ubyte").astype(np.float32) / 16
        self.labels = read_idx("labels-idx1-ubyte").astype(np.int32)[: len(self.images)]

    def __len__(self):
        return len(self.images)

    def __getitem__(self, index):
        return self.images[index].reshape(-1), self.labels[index]


place_dataset()
ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
data = ds.GeneratorDataset(Digits(), ["image", "label"], shuffle=True).batch(64)
net = nn.SequentialCell(nn.Dense(64, 48), nn.ReLU(), nn.Dense(48, 10))
optimizer = nn.Momentum(net.trainable_params(), 0.1, 0.9)
criterion = nn.CrossEntropyLoss()
step = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)
net.set_train()
for epoch in range(5):
    for x, y in data.create_tuple_iterator():
        loss, grads = step(x, y)
        optimizer(grads)
    print(epoch, float(loss))
