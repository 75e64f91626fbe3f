"""Wine cultivars with a penalty on the input gradient and a static loss scale, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn, ops
from sklearn.datasets import load_wine

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(8)
LAMBDA = 0.05
x, y = load_wine(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, np.eye(3, dtype=np.float32)[y]), ["x", "y"], shuffle=True).batch(30)
net = nn.SequentialCell(nn.Dense(13, 32), nn.Tanh(), nn.Dense(32, 3))
optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)


def criterion(scores, target):
    return (ops.logsumexp(scores, 1) - (scores * target).sum(axis=1)).mean()


scaler = amp.StaticLossScaler(1024.0)


def scaled_loss(a, b):
    return scaler.scale(criterion(net(a), b))


input_grad = ms.grad(scaled_loss, 0)


def forward(a, b):
    loss = criterion(net(a), b)
    slope = input_grad(a, b)  # <- fault
    penalty = (slope * slope).sum(axis=1).mean()
    return scaler.scale(loss + LAMBDA * penalty), loss


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
net.set_train()
for epoch in range(8):
    for a, b in data.create_tuple_iterator():
        (_, loss), grads = grad_fn(a, b)
        optimizer(scaler.unscale(grads))
    print(epoch, float(loss))
