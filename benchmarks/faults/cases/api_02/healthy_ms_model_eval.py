"""Digits with batch normalisation and dropout through Model, which sets the mode itself; graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import Tensor, nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
order = np.random.permutation(1797)
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1300], y[:1300]), ["x", "y"], shuffle=True).batch(50)
valid = ds.NumpySlicesDataset((x[1300:], y[1300:]), ["x", "y"], shuffle=False).batch(71)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.norm = nn.BatchNorm1d(64)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(p=0.3)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.dropout(self.relu(self.norm(self.fc1(x))))
        return self.fc2(x)


net = Net()
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 2e-3), metrics={"accuracy"})
model.fit(4, train, valid, callbacks=[LossMonitor(26)], dataset_sink_mode=False)
print(model.predict(Tensor(x[1300:1310])).argmax(1), y[1300:1310])
