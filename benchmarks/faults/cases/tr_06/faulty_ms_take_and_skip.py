"""Digits; the first part of the dataset is trained on, the rest validates. Model.fit in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)


class Digits:
    def __init__(self):
        x, y = load_digits(return_X_y=True)
        self.x, self.y = (x / 16).astype(np.float32), y.astype(np.int32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def pipeline():
    return ds.GeneratorDataset(Digits(), ["x", "y"], shuffle=True)


train = pipeline().take(1400).batch(50)
valid = pipeline().skip(1400).batch(100)  # <- fault

net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 10))
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 2e-3), metrics={"accuracy"})
model.fit(4, train, valid, callbacks=[LossMonitor(28)], dataset_sink_mode=False)
