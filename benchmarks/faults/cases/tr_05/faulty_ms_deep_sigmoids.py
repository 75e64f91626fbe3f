"""A deep perceptron on digits; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
order = np.random.permutation(len(x))
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)


def create_dataset(rows, shuffle):
    return ds.NumpySlicesDataset((x[rows], y[rows]), ["x", "y"], shuffle=shuffle).batch(50)


train, test = create_dataset(slice(0, 1500), True), create_dataset(slice(1500, None), False)

layers = [nn.Dense(64, 48), nn.Sigmoid()]
for _ in range(7):
    layers += [nn.Dense(48, 48), nn.Sigmoid()]  # <- fault
layers.append(nn.Dense(48, 10))
net = nn.SequentialCell(*layers)

optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.1, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(6, train, callbacks=[LossMonitor(30)], dataset_sink_mode=False)
print(model.eval(test, dataset_sink_mode=False))
