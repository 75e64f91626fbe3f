"""A deep residual perceptron on digits; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(50)


class Residual(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.fc = nn.Dense(width, width)

    def construct(self, x):
        return x + ops.relu(self.fc(self.norm(x)))


net = nn.SequentialCell(nn.Dense(64, 48), *[Residual(48) for _ in range(8)], nn.Dense(48, 10))
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(5, data, callbacks=[LossMonitor(36)], dataset_sink_mode=False)
print(model.eval(data, dataset_sink_mode=False))
