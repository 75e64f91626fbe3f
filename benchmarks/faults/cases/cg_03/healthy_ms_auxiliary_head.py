"""Digits with an auxiliary head that is only used in training; steps under ms.jit."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_seed(0)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.first = nn.Dense(64, 48)
        self.second = nn.Dense(48, 48)
        self.auxiliary = nn.Dense(48, 10)
        self.head = nn.Dense(48, 10)

    def construct(self, x):
        early = ops.relu(self.first(x))
        late = early + ops.relu(self.second(early))
        if self.training:
            return self.head(late), self.auxiliary(early)
        return self.head(late)


x, y = load_digits(return_X_y=True)
order = np.random.permutation(1797)
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1500], y[:1500]), ["x", "y"], shuffle=True).batch(50)
test = ds.NumpySlicesDataset((x[1500:], y[1500:]), ["x", "y"], shuffle=False).batch(99)
net = Net()
optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
criterion = nn.CrossEntropyLoss()


def forward(a, b):
    scores, extra = net(a)
    return criterion(scores, b) + 0.3 * criterion(extra, b)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)


@ms.jit
def train_step(a, b):
    loss, grads = grad_fn(a, b)
    optimizer(grads)
    return loss


for epoch in range(4):
    net.set_train()
    for a, b in train.create_tuple_iterator():
        loss = train_step(a, b)
    net.set_train(False)
    right = sum(int((net(a).argmax(1) == b).sum()) for a, b in test.create_tuple_iterator())
    print(epoch, float(loss), right / 297)
