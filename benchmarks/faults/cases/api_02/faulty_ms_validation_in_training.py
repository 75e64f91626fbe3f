"""Digits with dropout; compiled steps, a validation pass after every epoch."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
order = np.random.permutation(1797)
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1300], y[:1300]), ["x", "y"], shuffle=True).batch(50)
valid = ds.NumpySlicesDataset((x[1300:1790], y[1300:1790]), ["x", "y"], shuffle=False).batch(70)


class MlpNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.norm = nn.BatchNorm1d(64)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(p=0.4)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.dropout(self.relu(self.norm(self.fc1(x))))
        return self.fc2(x)


net = MlpNet()
loss_net = nn.WithLossCell(net, nn.CrossEntropyLoss())
train_net = nn.TrainOneStepCell(loss_net, nn.Adam(net.trainable_params(), learning_rate=2e-3))
train_net.set_train()
for epoch in range(4):
    for inputs, targets in train.create_tuple_iterator():
        loss = train_net(inputs, targets)
    hits = 0
    for inputs, targets in valid.create_tuple_iterator():
        hits += int((net(inputs).argmax(1) == targets).sum())  # <- fault
    print(epoch, float(loss), hits / 490)
