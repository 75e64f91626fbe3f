"""Digits with gradients accumulated over four small batches in a compiled step."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Parameter, Tensor, nn, ops
from sklearn.datasets import load_digits

ms.set_seed(0)
ACCUMULATE = 4
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True)
data = data.batch(16, drop_remainder=True)
net = nn.SequentialCell(nn.Dense(64, 48), nn.ReLU(), nn.Dense(48, 10))
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()


@ms.jit_class
class Accumulator:
    def __init__(self, optimizer, steps):
        self.optimizer = optimizer
        self.steps = steps
        self.inner_grads = optimizer.parameters.clone(prefix="accumulate_", init="zeros")
        self.zeros = optimizer.parameters.clone(prefix="zeros_", init="zeros")
        self.counter = Parameter(Tensor(1, ms.int32), "counter_")
        self.map = ops.HyperMap()

    def __call__(self, grads):
        self.map(ops.partial(ops.assign_add), self.inner_grads, grads)
        if self.counter % self.steps == 0:
            self.optimizer(self.inner_grads)  # <- fault
            self.map(ops.partial(ops.assign), self.inner_grads, self.zeros)
        ops.assign_add(self.counter, Tensor(1, ms.int32))
        return True


accumulator = Accumulator(optimizer, ACCUMULATE)


def forward(a, b):
    return criterion(net(a), b)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(a, b):
    loss, grads = grad_fn(a, b)
    accumulator(grads)
    return loss


net.set_train()
for epoch in range(5):
    total = 0.0
    for a, b in data.create_tuple_iterator():
        total += float(train_step(a, b))
    print(epoch, total / data.get_dataset_size())
