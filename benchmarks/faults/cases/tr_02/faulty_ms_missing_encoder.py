"""Digits with an encoder and a decoder behind one Model, graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(1)
x, _ = load_digits(return_X_y=True)
x = (x / 16).astype(np.float32)
data = ds.NumpySlicesDataset((x, x), ["x", "y"], shuffle=True).batch(50)


class AutoEncoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = nn.SequentialCell(nn.Dense(64, 32), nn.ReLU(), nn.Dense(32, 8))
        self.decoder = nn.SequentialCell(nn.Dense(8, 32), nn.ReLU(), nn.Dense(32, 64))

    def construct(self, x):
        return self.decoder(self.encoder(x))


net = AutoEncoder()
optimizer = nn.Adam(net.decoder.trainable_params(), learning_rate=2e-3)  # <- fault
model = Model(net, nn.MSELoss(), optimizer)
model.train(6, data, callbacks=[LossMonitor(36)], dataset_sink_mode=False)
