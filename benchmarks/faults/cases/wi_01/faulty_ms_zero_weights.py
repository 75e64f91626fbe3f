"""Digits with a perceptron whose initial weights are named in one place; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(50)


def dense(n_in, n_out):
    return nn.Dense(n_in, n_out, weight_init="zeros", bias_init="zeros")  # <- fault


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = dense(64, 64)
        self.relu = nn.ReLU()
        self.fc2 = dense(64, 32)
        self.fc3 = dense(32, 10)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


net = Network()
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.05, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(4, data, callbacks=[LossMonitor(36)], dataset_sink_mode=False)
print(model.eval(data, dataset_sink_mode=False))
