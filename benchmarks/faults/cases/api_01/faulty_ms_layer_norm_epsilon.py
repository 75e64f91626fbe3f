"""A residual network for wine data with layer normalisation, settings in a dictionary; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_wine

SETTINGS = {"width": 32, "depth": 3, "norm_eps": 0.9, "rate": 3e-3}


class Block(nn.Cell):
    def __init__(self, width, eps):
        super().__init__()
        self.norm = nn.LayerNorm((width,), epsilon=eps)  # <- fault
        self.up = nn.Dense(width, 2 * width)
        self.act = nn.GELU(approximate=False)
        self.down = nn.Dense(2 * width, width)

    def construct(self, x):
        return x + self.down(self.act(self.up(self.norm(x))))


ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(6)
x, y = load_wine(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, y.astype(np.int32)), ["x", "y"], shuffle=True).batch(16)
blocks = [Block(SETTINGS["width"], SETTINGS["norm_eps"]) for _ in range(SETTINGS["depth"])]
net = nn.SequentialCell(nn.Dense(13, SETTINGS["width"]), *blocks, nn.Dense(SETTINGS["width"], 3))
optimizer = nn.Adam(net.trainable_params(), learning_rate=SETTINGS["rate"])
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(6, data, callbacks=[LossMonitor(12)], dataset_sink_mode=False)
print(model.eval(data, dataset_sink_mode=False))
