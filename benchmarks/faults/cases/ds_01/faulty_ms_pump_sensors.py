"""Power draw of a pump from its sensors, a small perceptron trained with Model.fit."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(11)
rng = np.random.default_rng(11)

readings = rng.normal([20.0, 55.0, 1.2, 3.4, 0.8, 12.0], [4.0, 12.0, 0.3, 1.1, 0.2, 5.0], size=(1200, 6))
power = readings @ np.array([0.8, -0.2, 3.0, 1.5, -4.0, 0.4]) + rng.normal(0, 0.5, 1200)
silent = rng.random((1200, 2)) < 0.05  # a sensor that does not answer is logged as -999
readings[:, [1, 4]] = np.where(silent, -999.0, readings[:, [1, 4]])

mean, std = readings[:1000].mean(0), readings[:1000].std(0)
x = ((readings - mean) / std).astype(np.float32)
y = ((power - power.mean()) / power.std()).astype(np.float32)[:, None]


def make(rows, shuffle):
    data = ds.NumpySlicesDataset((x[rows], y[rows]), column_names=["sensors", "power"], shuffle=shuffle)  # <- fault
    return data.batch(50)


net = nn.SequentialCell(nn.Dense(6, 48), nn.Tanh(), nn.Dense(48, 48), nn.Tanh(), nn.Dense(48, 1))
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.02, momentum=0.9)
model = Model(net, nn.MSELoss(), optimizer, metrics={"mse": nn.MSE()})
train, valid = make(slice(0, 1000), True), make(slice(1000, None), False)
model.fit(8, train, valid, callbacks=[LossMonitor(20)], dataset_sink_mode=False)
