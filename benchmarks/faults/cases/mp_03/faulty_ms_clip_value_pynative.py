"""Wine cultivars with a dynamic loss scale, gradients limited to a range; PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn, ops
from sklearn.datasets import load_wine

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(4)
x, y = load_wine(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, y.astype(np.int32)), ["x", "y"], shuffle=True).batch(16)
net = amp.auto_mixed_precision(nn.SequentialCell(nn.Dense(13, 32), nn.Tanh(), nn.Dense(32, 3)), "O2")
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
criterion = nn.CrossEntropyLoss()
scaler = amp.DynamicLossScaler(scale_value=2**12, scale_factor=2, scale_window=200)


def forward(a, b):
    loss = criterion(net(a).astype(ms.float32), b)
    return scaler.scale(loss), loss


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
net.set_train()
for epoch in range(8):
    for a, b in data.create_tuple_iterator():
        (_, loss), grads = grad_fn(a, b)
        finite = amp.all_finite(grads)
        if finite:
            grads = ops.clip_by_value(grads, -0.5, 0.5)  # <- fault
            optimizer(scaler.unscale(grads))
        scaler.adjust(finite)
    print(epoch, float(loss))
