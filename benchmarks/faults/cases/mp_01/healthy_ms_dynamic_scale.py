"""Digits in float16 with a dynamic loss scale that begins high and comes down in the first steps; compiled steps."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True)
data = data.batch(50, drop_remainder=True)
net = amp.auto_mixed_precision(nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 10)), "O2")
optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
criterion = nn.CrossEntropyLoss()
scaler = amp.DynamicLossScaler(scale_value=2**22, scale_factor=2, scale_window=500)


def forward(a, b):
    loss = criterion(net(a).astype(ms.float32), b)
    return scaler.scale(loss), loss


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)


@ms.jit
def train_step(a, b):
    (_, loss), grads = grad_fn(a, b)
    grads = scaler.unscale(grads)
    finite = amp.all_finite(grads)
    if finite:
        optimizer(grads)
    scaler.adjust(finite)
    return loss


net.set_train()
for epoch in range(5):
    losses = [float(train_step(a, b)) for a, b in data.create_tuple_iterator()]
    print(epoch, np.mean(losses), float(scaler.scale_value))
