"""A wide perceptron on a small table with many uninformative columns; Model.fit validates every epoch."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import make_classification

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = make_classification(500, 30, n_informative=4, n_redundant=0, class_sep=0.7, flip_y=0.0, random_state=4)
x, y = x.astype(np.float32), y.astype(np.int32)
train = ds.NumpySlicesDataset((x[:200], y[:200]), ["x", "y"], shuffle=True).batch(20)
valid = ds.NumpySlicesDataset((x[200:], y[200:]), ["x", "y"], shuffle=False).batch(100)


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(30, 128)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(128, 128)
        self.fc3 = nn.Dense(128, 2)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        x = self.relu(self.fc2(x))
        return self.fc3(x)


net = Classifier()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"loss": nn.Loss(), "accuracy": nn.Accuracy()})
model.fit(60, train, valid, callbacks=[LossMonitor(10)], dataset_sink_mode=False)  # <- fault
