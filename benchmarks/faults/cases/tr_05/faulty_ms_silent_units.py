"""Breast cancer with biases set at the start, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import Constant
from sklearn.datasets import load_breast_cancer

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)
x, y = load_breast_cancer(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, y.astype(np.int32)), ["x", "y"], shuffle=True).batch(32)


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(30, 64, bias_init=Constant(0.1))
        self.fc2 = nn.Dense(64, 32, bias_init=Constant(-8.0))  # <- fault
        self.out = nn.Dense(32, 2)

    def construct(self, x):
        x = ops.relu(self.fc1(x))
        x = ops.relu(self.fc2(x))
        return self.out(x)


net = Classifier()
optimizer = nn.SGD(net.trainable_params(), learning_rate=0.05)
criterion = nn.CrossEntropyLoss()


def forward(a, b):
    logits = net(a)
    return criterion(logits, b), logits


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
net.set_train()
for epoch in range(6):
    right = 0
    for a, b in data.create_tuple_iterator():
        (loss, logits), grads = grad_fn(a, b)
        optimizer(grads)
        right += int((logits.argmax(1) == b).sum())
    print(epoch, float(loss), right / len(x))
