"""Digits read row by row with an LSTM; the gradients are unscaled and then clipped, in a compiled step."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn, ops
from sklearn.datasets import load_digits

ms.set_seed(0)
digits = load_digits()
rows, labels = (digits.images / 8 - 1).astype(np.float32), digits.target.astype(np.int32)
data = ds.NumpySlicesDataset((rows, labels), ["rows", "label"], shuffle=True).batch(60)


class Reader(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(8, 32, batch_first=True)
        self.out = nn.Dense(32, 10)

    def construct(self, x):
        states, _ = self.lstm(x)
        return self.out(states[:, -1])


net = Reader()
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.2, momentum=0.9)
criterion = nn.CrossEntropyLoss()
scaler = amp.StaticLossScaler(1024.0)


def forward(x, y):
    loss = criterion(net(x), y)
    return scaler.scale(loss), loss


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)


@ms.jit
def train_step(x, y):
    (_, loss), grads = grad_fn(x, y)
    grads = scaler.unscale(grads)
    grads = ops.clip_by_global_norm(grads, 1.0)
    optimizer(grads)
    return loss


net.set_train()
for epoch in range(5):
    for x, y in data.create_tuple_iterator():
        loss = train_step(x, y)
    print(epoch, float(loss))
