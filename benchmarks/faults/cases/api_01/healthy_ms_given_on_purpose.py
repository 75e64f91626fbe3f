"""Digits with a convolutional network ported from PyTorch, every setting given in MindSpore's convention; PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import HeUniform
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(2)
digits = load_digits()
order = np.random.permutation(1797)
images = (digits.images[order, None] / 16).astype(np.float32)
labels = digits.target[order].astype(np.int32)
train = ds.NumpySlicesDataset((images[:1500], labels[:1500]), ["image", "label"], shuffle=True).batch(50)
test = ds.NumpySlicesDataset((images[1500:], labels[1500:]), ["image", "label"], shuffle=False).batch(99)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        init = HeUniform(5**0.5)
        self.conv = nn.Conv2d(1, 12, 3, pad_mode="valid", has_bias=True, weight_init=init, bias_init="zeros")
        self.bn = nn.BatchNorm2d(12, eps=1e-5, momentum=0.9)
        self.dropout = nn.Dropout(p=0.1)
        self.norm = nn.LayerNorm((12 * 9,), epsilon=1e-5)
        self.fc = nn.Dense(12 * 9, 10)

    def construct(self, x):
        x = ops.max_pool2d(ops.relu(self.bn(self.conv(x))), 2)
        return self.fc(self.dropout(self.norm(x.reshape(x.shape[0], -1))))


net = Net()
optimizer = nn.Adam(net.trainable_params(), learning_rate=3e-3)
grad_fn = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
for epoch in range(3):
    net.set_train()
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
    net.set_train(False)
    right = sum(int((net(x).argmax(1) == y).sum()) for x, y in test.create_tuple_iterator())
    print(epoch, float(loss), right / 297)
