"""Handwritten digits with a perceptron and momentum, Model.fit in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
order = np.random.permutation(len(x))
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1500], y[:1500]), ["x", "y"], shuffle=True).batch(1500)  # <- fault
test = ds.NumpySlicesDataset((x[1500:], y[1500:]), ["x", "y"], shuffle=False).batch(297)


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = Mlp()
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.01, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.fit(25, train, test, callbacks=[LossMonitor(1)], dataset_sink_mode=False)
