"""Digits with a perceptron, everything from one seed; Model.train in graph mode."""

import random

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
for seed in (random.seed, np.random.seed, ms.set_seed, ds.config.set_seed):
    seed(3)
x, y = load_digits(return_X_y=True)
noise = np.random.normal(0, 0.01, x.shape)
data = ds.NumpySlicesDataset(((x / 16 + noise).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(50)


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = Classifier()
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.05, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(4, data, callbacks=[LossMonitor(36)], dataset_sink_mode=False)
print(model.eval(data, dataset_sink_mode=False))
