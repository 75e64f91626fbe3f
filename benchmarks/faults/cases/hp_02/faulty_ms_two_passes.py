"""A convolutional network on digits with plain stochastic gradient descent, PyNative."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(3)
digits = load_digits()
order = np.random.permutation(1797)
images = (digits.images[order, None] / 16).astype(np.float32)
labels = digits.target[order].astype(np.int32)
train = ds.NumpySlicesDataset((images[:1437], labels[:1437]), ["image", "label"], shuffle=True).batch(32)
test = ds.NumpySlicesDataset((images[1437:], labels[1437:]), ["image", "label"], shuffle=False).batch(120)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 16, 3, pad_mode="pad", padding=1, has_bias=True, weight_init="he_uniform")
        self.fc1 = nn.Dense(16 * 16, 64)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = ops.max_pool2d(ops.relu(self.conv(x)), 2)
        return self.fc2(ops.relu(self.fc1(x.reshape(x.shape[0], -1))))


net = Net()
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.01)
grad_fn = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)


def evaluate():
    net.set_train(False)
    scores = [(net(x), y) for x, y in test.create_tuple_iterator()]
    loss = np.mean([float(ops.cross_entropy(s, y)) for s, y in scores])
    return loss, sum(int((s.argmax(1) == y).sum()) for s, y in scores) / 360


for epoch in range(2):  # <- fault
    net.set_train()
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
    print(epoch, float(loss), *evaluate())
