"""The next value of a series from windows that follow one another in time, in a PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(9)
rng = np.random.default_rng(9)
time = np.arange(1300)
series = np.sin(time / 9) + 0.4 * np.sin(time / 3.1) + rng.normal(0, 0.08, len(time))
windows = np.lib.stride_tricks.sliding_window_view(series, 25).astype(np.float32)
past, future = windows[:, :24, None], windows[:, 24:]
train = ds.NumpySlicesDataset((past[:1000], future[:1000]), ["past", "future"], shuffle=False).batch(40)
later = ds.NumpySlicesDataset((past[1024:], future[1024:]), ["past", "future"], shuffle=False).batch(126)


class Forecast(nn.Cell):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(1, 20, batch_first=True)
        self.out = nn.Dense(20, 1)

    def construct(self, x):
        states, _ = self.lstm(x)
        return self.out(states[:, -1])


net = Forecast()
optimizer = nn.Adam(net.trainable_params(), 5e-3)
grad_fn = ms.value_and_grad(lambda x, y: ops.mse_loss(net(x), y), None, optimizer.parameters)
for epoch in range(4):
    net.set_train()
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
    net.set_train(False)
    print(epoch, float(loss), np.mean([float(ops.mse_loss(net(x), y)) for x, y in later.create_tuple_iterator()]))
