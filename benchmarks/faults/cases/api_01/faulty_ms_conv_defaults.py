"""Stripes in small pictures, a convolutional network ported from PyTorch layer by layer; steps under ms.jit."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops

ms.set_seed(5)
rng = np.random.default_rng(5)
kind = rng.integers(0, 3, 900).astype(np.int32)
pictures = rng.normal(0, 0.3, (900, 1, 12, 12))
at = rng.integers(1, 11, 900)
for i in range(900):
    if kind[i] == 0:
        pictures[i, 0, at[i], :] += 1
    elif kind[i] == 1:
        pictures[i, 0, :, at[i]] += 1
data = ds.NumpySlicesDataset((pictures.astype(np.float32), kind), ["picture", "kind"], shuffle=True).batch(30)


class Net(nn.Cell):
    """conv 3x3 without padding and with bias, twice; mean over the positions."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3)  # <- fault
        self.conv2 = nn.Conv2d(16, 32, 3)  # <- fault
        self.fc = nn.Dense(32, 3)

    def construct(self, x):
        x = ops.relu(self.conv1(x))
        x = ops.relu(self.conv2(x))
        return self.fc(x.mean(axis=(2, 3)))


net = Net()
optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)
criterion = nn.CrossEntropyLoss()


def forward(x, y):
    return criterion(net(x), y)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(x, y):
    loss, grads = grad_fn(x, y)
    optimizer(grads)
    return loss


net.set_train()
for epoch in range(6):
    for x, y in data.create_tuple_iterator():
        loss = train_step(x, y)
    print(epoch, float(loss))
