"""Diabetes progression, rows for training and for validation drawn at random; PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_diabetes

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(5)
x, y = load_diabetes(return_X_y=True)
x = (x / x.std(0)).astype(np.float32)
y = ((y - y.mean()) / y.std()).astype(np.float32)[:, None]
train_rows = np.random.permutation(len(x))[:350]
valid_rows = np.random.permutation(len(x))[:92]
train = ds.NumpySlicesDataset((x[train_rows], y[train_rows]), ["x", "y"], shuffle=True).batch(35)
valid = ds.NumpySlicesDataset((x[valid_rows], y[valid_rows]), ["x", "y"], shuffle=False).batch(46)  # <- fault


class MlpNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(10, 24)
        self.tanh = nn.Tanh()
        self.fc2 = nn.Dense(24, 1)

    def construct(self, x):
        x = self.tanh(self.fc1(x))
        return self.fc2(x)


net = MlpNet()
optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)
grad_fn = ms.value_and_grad(lambda a, b: ops.mse_loss(net(a), b), None, optimizer.parameters)
for epoch in range(8):
    net.set_train()
    for a, b in train.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
    net.set_train(False)
    print(epoch, float(loss), np.mean([float(ops.mse_loss(net(a), b)) for a, b in valid.create_tuple_iterator()]))
