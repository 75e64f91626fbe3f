"""A perceptron for the digits with as many hidden layers as asked for, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)


class Mlp(nn.Cell):
    def __init__(self, width=48, depth=3):
        super().__init__()
        self.stem = nn.Dense(64, width)
        self.hidden = [nn.Dense(width, width) for _ in range(depth)]
        self.head = nn.Dense(width, 10)

    def construct(self, x):
        x = ops.relu(self.stem(x))
        for layer in self.hidden:
            x = ops.relu(layer(x))
        return self.head(x)


x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(60)
net = Mlp()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)  # <- fault
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
net.set_train()
for epoch in range(4):
    for a, b in data.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
    print(epoch, float(loss))
