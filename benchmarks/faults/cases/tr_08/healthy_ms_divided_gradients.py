"""A regression on a smooth surface, gradients averaged over five micro-batches; PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(2)
x = np.random.uniform(-1, 1, (1500, 4)).astype(np.float32)
y = (np.sin(3 * x[:, :1]) + x[:, 1:2] * x[:, 2:3]).astype(np.float32)
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(30)


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(4, 32)
        self.tanh = nn.Tanh()
        self.fc2 = nn.Dense(32, 1)

    def construct(self, x):
        x = self.tanh(self.fc1(x))
        return self.fc2(x)


net = Mlp()
optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-2)
grad_fn = ms.value_and_grad(lambda a, b: ops.mse_loss(net(a), b), None, optimizer.parameters)
MICRO_BATCHES = 5

net.set_train()
for epoch in range(8):
    held, losses = None, []
    for number, (a, b) in enumerate(data.create_tuple_iterator(), 1):
        loss, grads = grad_fn(a, b)
        losses.append(float(loss))
        held = grads if held is None else tuple(h + g for h, g in zip(held, grads))
        if number % MICRO_BATCHES == 0:
            optimizer(tuple(h / MICRO_BATCHES for h in held))
            held = None
    print(epoch, np.mean(losses))
