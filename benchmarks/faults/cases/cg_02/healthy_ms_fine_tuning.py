"""Pretraining on the digits 0 to 4, then a new head on 5 to 9 over the frozen backbone; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(1)
x, y = load_digits(return_X_y=True)
x, y = (x / 16).astype(np.float32), y.astype(np.int32)


def part(classes):
    rows = np.isin(y, classes)
    return ds.NumpySlicesDataset((x[rows], y[rows] - classes[0]), ["x", "y"], shuffle=True).batch(50)


class Net(nn.Cell):
    def __init__(self, classes):
        super().__init__()
        self.backbone = nn.SequentialCell(nn.Dense(64, 128), nn.ReLU())
        self.head = nn.Dense(128, classes)

    def construct(self, x):
        return self.head(self.backbone(x))


def train(net, data, epochs):
    optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-2)
    model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
    model.train(epochs, data, callbacks=[LossMonitor(18)], dataset_sink_mode=False)
    print(model.eval(data, dataset_sink_mode=False))


pretrained = Net(5)
train(pretrained, part(range(0, 5)), 4)
weights = {name: value for name, value in pretrained.parameters_dict().items() if name.startswith("backbone")}

net = Net(5)
ms.load_param_into_net(net, weights)
for param in net.backbone.get_parameters():
    param.requires_grad = False
train(net, part(range(5, 10)), 8)
