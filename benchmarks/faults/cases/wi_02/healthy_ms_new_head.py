"""The backbone comes from a checkpoint of another task, the head is new; PyNative loop."""

import os
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(2)
CHECKPOINT = os.path.join(tempfile.gettempdir(), "ms-parity.ckpt")
x, y = load_digits(return_X_y=True)
x = (x / 16).astype(np.float32)


class Net(nn.Cell):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.Dense(64, 64)
        self.head = nn.Dense(64, classes)

    def construct(self, x):
        return self.head(ops.relu(self.backbone(x)))


def fit(net, labels, epochs):
    data = ds.NumpySlicesDataset((x, labels.astype(np.int32)), ["x", "y"], shuffle=True).batch(60)
    optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)
    grad_fn = ms.value_and_grad(lambda a, b: ops.cross_entropy(net(a), b), None, optimizer.parameters)
    net.set_train()
    for epoch in range(epochs):
        for a, b in data.create_tuple_iterator():
            loss, grads = grad_fn(a, b)
            optimizer(grads)
        print(epoch, float(loss))


parity = Net(2)
fit(parity, y % 2, 2)
ms.save_checkpoint(parity, CHECKPOINT)

net = Net(10)
pretrained = ms.load_checkpoint(CHECKPOINT)
for name in [name for name in pretrained if name.startswith("head.")]:
    del pretrained[name]
print(ms.load_param_into_net(net, pretrained))
fit(net, y, 3)
