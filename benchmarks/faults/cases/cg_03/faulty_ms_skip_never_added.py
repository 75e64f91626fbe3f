"""A deep residual perceptron on a smooth surface of six variables; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.train import LossMonitor, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(3)
x = np.random.uniform(-1, 1, (1500, 6)).astype(np.float32)
y = (np.sin(3 * x[:, :1]) + x[:, 1:2] * x[:, 2:3] + 0.5 * x[:, 3:4]).astype(np.float32)


class ResidualBlock(nn.Cell):
    def __init__(self, n_in, n_out):
        super().__init__()
        self.fc1 = nn.Dense(n_in, n_out)
        self.fc2 = nn.Dense(n_out, n_out)
        self.project = nn.Dense(n_in, n_out, has_bias=False)  # <- fault

    def construct(self, x):
        shortcut = self.project(x)  # <- fault
        out = self.fc2(ops.relu(self.fc1(x)))
        return ops.relu(out)


net = nn.SequentialCell(ResidualBlock(6, 32), ResidualBlock(32, 32), ResidualBlock(32, 16), nn.Dense(16, 1))
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(50)
optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
model = Model(net, nn.MSELoss(), optimizer)
model.train(6, data, callbacks=[LossMonitor(30)], dataset_sink_mode=False)
