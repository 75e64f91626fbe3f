"""Trains for a few steps, and writes down each one that is complete."""

import mindspore as ms
import numpy as np
from mindspore import Tensor, nn

STEPS = 40
ms.set_context(mode=ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(0)
random = np.random.default_rng(0)
x = random.normal(size=(256, 8)).astype(np.float32)
y = x[:, :4].argmax(axis=1).astype(np.int32)
model = nn.SequentialCell(nn.Dense(8, 16), nn.ReLU(), nn.Dense(16, 4))
criterion = nn.CrossEntropyLoss()
optimizer = nn.Adam(model.trainable_params(), learning_rate=1e-2)
gradient = ms.value_and_grad(lambda data, label: criterion(model(data), label), None, optimizer.parameters)
with open("steps.txt", "ab", buffering=0) as complete:
    for step in range(STEPS):
        rows = random.integers(0, len(x), 16)
        loss, gradients = gradient(Tensor(x[rows]), Tensor(y[rows]))
        optimizer(gradients)
        complete.write(b"step\n")
