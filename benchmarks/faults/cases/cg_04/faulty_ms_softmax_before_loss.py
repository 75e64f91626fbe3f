"""Digits with a perceptron that returns class probabilities; Model.fit in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
order = np.random.permutation(1797)
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1500], y[:1500]), ["x", "y"], shuffle=True).batch(50)
test = ds.NumpySlicesDataset((x[1500:], y[1500:]), ["x", "y"], shuffle=False).batch(99)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(64, 64, activation="relu")
        self.out = nn.Dense(64, 10)
        self.softmax = nn.Softmax(axis=-1)

    def construct(self, x):
        return self.softmax(self.out(self.hidden(x)))  # <- fault


net = Net()
criterion = nn.SoftmaxCrossEntropyWithLogits(sparse=True, reduction="mean")
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.05, momentum=0.9)
model = Model(net, criterion, optimizer, metrics={"accuracy"})
model.fit(5, train, test, callbacks=[LossMonitor(30)], dataset_sink_mode=False)
