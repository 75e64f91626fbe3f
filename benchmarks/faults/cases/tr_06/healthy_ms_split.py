"""Digits; one permutation of the rows is cut in two. Model.fit in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)


class Digits:
    def __init__(self, rows):
        x, y = load_digits(return_X_y=True)
        self.x, self.y = (x[rows] / 16).astype(np.float32), y[rows].astype(np.int32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


rows = np.random.permutation(1797)
train = ds.GeneratorDataset(Digits(rows[:1400]), ["x", "y"], shuffle=True).batch(50)
valid = ds.GeneratorDataset(Digits(rows[1400:]), ["x", "y"], shuffle=False).batch(100)

net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 10))
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 2e-3), metrics={"accuracy"})
model.fit(5, train, valid, callbacks=[LossMonitor(28)], dataset_sink_mode=False)
