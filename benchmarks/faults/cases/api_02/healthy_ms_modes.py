"""Digits with batch normalisation and dropout; the mode is set before training and before validation."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
order = np.random.permutation(1797)
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1300], y[:1300]), ["x", "y"], shuffle=True).batch(50)
valid = ds.NumpySlicesDataset((x[1300:], y[1300:]), ["x", "y"], shuffle=False).batch(100)
net = nn.SequentialCell(nn.Dense(64, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Dropout(p=0.3), nn.Dense(64, 10))
optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
criterion = nn.CrossEntropyLoss()


def forward(inputs, targets):
    return criterion(net(inputs), targets)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
for epoch in range(4):
    net.set_train(True)
    for inputs, targets in train.create_tuple_iterator():
        loss, grads = grad_fn(inputs, targets)
        optimizer(grads)
    net.set_train(False)
    hits = sum(int((net(inputs).argmax(1) == targets).sum()) for inputs, targets in valid.create_tuple_iterator())
    print(epoch, float(loss), hits / 497)
