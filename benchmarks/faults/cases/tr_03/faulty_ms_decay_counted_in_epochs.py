"""Digits with a cosine schedule of the learning rate; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

EPOCHS = 8
ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
order = np.random.permutation(1797)
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1500], y[:1500]), ["x", "y"], shuffle=True).batch(50)
test = ds.NumpySlicesDataset((x[1500:], y[1500:]), ["x", "y"], shuffle=False).batch(99)


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = Classifier()
total = EPOCHS * train.get_dataset_size()
rate = nn.cosine_decay_lr(min_lr=0.0, max_lr=0.05, total_step=total, step_per_epoch=1, decay_epoch=EPOCHS)  # <- fault
optimizer = nn.Momentum(net.trainable_params(), learning_rate=rate, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(EPOCHS, train, callbacks=[LossMonitor(30)], dataset_sink_mode=False)
print(model.eval(test, dataset_sink_mode=False))
