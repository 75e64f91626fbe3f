"""A residual perceptron for the digits, four blocks deep; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.up = nn.Dense(width, 2 * width)
        self.down = nn.Dense(2 * width, width)

    def construct(self, x):
        return x + self.down(ops.relu(self.up(self.norm(x))))


class ResidualNet(nn.Cell):
    def __init__(self, width=48, depth=4):
        super().__init__()
        self.stem = nn.Dense(64, width)
        block = Block(width)
        self.blocks = nn.CellList([block] * depth)  # <- fault
        self.head = nn.Dense(width, 10)

    def construct(self, x):
        x = ops.relu(self.stem(x))
        for block in self.blocks:
            x = block(x)
        return self.head(x)


ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(64)
net = ResidualNet()
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 2e-3), metrics={"accuracy"})
model.train(4, data, callbacks=[LossMonitor(29)], dataset_sink_mode=False)
print(model.eval(data, dataset_sink_mode=False))
