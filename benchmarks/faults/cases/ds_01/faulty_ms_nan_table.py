"""Benign or malignant from a table of measurements, in a PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_breast_cancer

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(3)
rng = np.random.default_rng(3)


class Measurements:
    def __init__(self, rows):
        table, labels = load_breast_cancer(return_X_y=True)
        table = (table - table.mean(0)) / table.std(0)
        table[rng.random(table.shape) < 0.004] = np.nan
        self.x, self.y = table[rows].astype(np.float32), labels[rows].astype(np.float32)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


train = ds.GeneratorDataset(Measurements(slice(0, 450)), ["features", "label"], shuffle=True).batch(32)  # <- fault
net = nn.SequentialCell(nn.Dense(30, 32), nn.ReLU(), nn.Dense(32, 1))
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)


def forward(features, label):
    return ops.binary_cross_entropy_with_logits(net(features).squeeze(1), label, ops.ones_like(label), ops.ones_like(label))


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
net.set_train()
for epoch in range(5):
    total = 0.0
    for features, label in train.create_tuple_iterator():
        loss, grads = grad_fn(features, label)
        optimizer(grads)
        total += float(loss)
    print(epoch, total / train.get_dataset_size())
