"""Digits with a convolutional encoder and a classifier, value_and_grad in PyNative mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
digits = load_digits()
images, labels = (digits.images[:, None] / 16).astype(np.float32), digits.target.astype(np.int32)
data = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True).batch(60)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, pad_mode="same", has_bias=True, weight_init="he_normal")
        self.conv2 = nn.Conv2d(8, 16, 3, pad_mode="same", has_bias=True, weight_init="he_normal")
        self.fc1 = nn.Dense(16 * 16, 32)
        self.fc2 = nn.Dense(32, 10)

    def construct(self, x):
        features = ops.relu(self.conv1(x))
        features = ops.max_pool2d(ops.relu(self.conv2(features)), 2)
        features = ops.stop_gradient(features)  # <- fault
        hidden = ops.relu(self.fc1(features.reshape(x.shape[0], -1)))
        return self.fc2(hidden)


net = Net()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
criterion = nn.CrossEntropyLoss()


def forward(x, y):
    logits = net(x)
    return criterion(logits, y), logits


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
net.set_train()
for epoch in range(4):
    right = 0
    for x, y in data.create_tuple_iterator():
        (loss, logits), grads = grad_fn(x, y)
        optimizer(grads)
        right += int((logits.argmax(1) == y).sum())
    print(epoch, float(loss), right / len(labels))
