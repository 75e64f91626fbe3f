"""Continues from a checkpoint of the first half of the training, PyNative loop."""

import os
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import HeUniform, initializer
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(2)
CHECKPOINT = os.path.join(tempfile.gettempdir(), "ms-digits-half.ckpt")
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(60)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        return self.fc2(ops.relu(self.fc1(x)))


def init_weights(net):
    for cell in (net.fc1, net.fc2):
        cell.weight.set_data(initializer(HeUniform(), cell.weight.shape, cell.weight.dtype))  # <- fault


def fit(net, epochs):
    optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
    grad_fn = ms.value_and_grad(lambda a, b: ops.cross_entropy(net(a), b), None, optimizer.parameters)
    net.set_train()
    for epoch in range(epochs):
        for a, b in data.create_tuple_iterator():
            loss, grads = grad_fn(a, b)
            optimizer(grads)
        print(epoch, float(loss))


first = Net()
fit(first, 3)
ms.save_checkpoint(first, CHECKPOINT)

net = Net()
not_loaded, _ = ms.load_param_into_net(net, ms.load_checkpoint(CHECKPOINT))
print("not loaded:", not_loaded)
init_weights(net)
fit(net, 3)
