"""Digits with gradients accumulated over four batches, in a PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True)
data = data.batch(32, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(64, 48), nn.ReLU(), nn.Dense(48, 10))
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.1)
criterion = nn.CrossEntropyLoss()


class Accumulator:
    def __init__(self, optimizer, steps):
        self.optimizer = optimizer
        self.steps = steps
        self.count = 0
        self.held = optimizer.parameters.clone(prefix="held", init="zeros")
        self.map = ops.HyperMap()

    def __call__(self, grads):
        self.map(ops.assign_add, self.held, grads)
        self.count += 1
        if self.count % self.steps == 0:
            self.optimizer(self.held)  # <- fault


accumulator = Accumulator(optimizer, 4)
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b) / accumulator.steps, None, optimizer.parameters)
net.set_train()
for epoch in range(4):
    total = 0.0
    for a, b in data.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        accumulator(grads)
        total += float(loss) * accumulator.steps
    print(epoch, total / data.get_dataset_size())
