"""Progression of diabetes from ten measurements, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_diabetes

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(5)
x, y = load_diabetes(return_X_y=True)
x = (x / x.std(0)).astype(np.float32)
y = ((y - y.mean()) / y.std()).astype(np.float32)
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(34)
net = nn.SequentialCell(nn.Dense(10, 32), nn.Tanh(), nn.Dense(32, 1))
optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)


def forward(features, target):
    prediction = net(features)
    return ((prediction - target) ** 2).mean()  # <- fault


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
net.set_train()
for epoch in range(8):
    losses = []
    for features, target in data.create_tuple_iterator():
        loss, grads = grad_fn(features, target)
        grads = ops.clip_by_global_norm(grads, 5.0)
        optimizer(grads)
        losses.append(float(loss))
    print(epoch, np.mean(losses))
