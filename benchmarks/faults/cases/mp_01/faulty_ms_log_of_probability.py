"""Benign or malignant with the cross entropy written out, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_breast_cancer

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
x, y = load_breast_cancer(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, y.astype(np.float32)), ["x", "y"], shuffle=True).batch(25)
net = nn.SequentialCell(nn.Dense(30, 64), nn.ReLU(), nn.Dense(64, 1))
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.5, momentum=0.9)


def cross_entropy(p, target):
    gain = target * ops.log(p)  # <- fault
    gain = gain + (1 - target) * ops.log(1 - p)  # <- fault
    return -gain.mean()


def forward(features, target):
    p = ops.sigmoid(net(features).squeeze(1))
    return cross_entropy(p, target)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
net.set_train()
for epoch in range(6):
    for features, target in data.create_tuple_iterator():
        loss, grads = grad_fn(features, target)
        optimizer(grads)
    print(epoch, float(loss))
