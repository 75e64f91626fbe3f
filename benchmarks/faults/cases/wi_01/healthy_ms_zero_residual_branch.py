"""A residual perceptron whose branches start at zero so that every block begins as the identity, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.up = nn.Dense(width, width, weight_init="he_uniform", bias_init="zeros")
        self.down = nn.Dense(width, width, weight_init="zeros", bias_init="zeros")

    def construct(self, x):
        return x + self.down(ops.relu(self.up(x)))


x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(60)
net = nn.SequentialCell(nn.Dense(64, 48), Block(48), Block(48), nn.Dense(48, 10))
optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
net.set_train()
for epoch in range(4):
    for a, b in data.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
    print(epoch, float(loss))
