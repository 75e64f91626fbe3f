"""Digits in float16 with a DynamicLossScaler and a step that is skipped on overflow, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(60)
net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 10))
net = amp.auto_mixed_precision(net, "O2")
optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
criterion = nn.CrossEntropyLoss()
scaler = amp.DynamicLossScaler(scale_value=2**12, scale_factor=2, scale_window=100)


def forward(a, b):
    loss = criterion(net(a).astype(ms.float32), b)
    return scaler.scale(loss), loss


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
net.set_train()
for epoch in range(4):
    for a, b in data.create_tuple_iterator():
        (_, loss), grads = grad_fn(a, b)
        finite = amp.all_finite(grads)
        scaler.adjust(finite)
        if finite:
            optimizer(scaler.unscale(grads))
    print(epoch, float(loss))
