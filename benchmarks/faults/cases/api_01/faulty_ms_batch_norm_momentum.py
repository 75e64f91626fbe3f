"""Digits with a convolutional network; the layers carry over the settings of the PyTorch version. Model.fit, graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(2)


def block(n_in, n_out):
    return nn.SequentialCell(
        nn.Conv2d(n_in, n_out, 3, pad_mode="pad", padding=1, has_bias=False, weight_init="he_normal"),
        nn.BatchNorm2d(n_out, eps=1e-5, momentum=0.1),  # <- fault
        nn.ReLU(),
    )


digits = load_digits()
order = np.random.permutation(1797)
images = (digits.images[order, None] / 16).astype(np.float32)
labels = digits.target[order].astype(np.int32)
train = ds.NumpySlicesDataset((images[:1500], labels[:1500]), ["image", "label"], shuffle=True).batch(25)
test = ds.NumpySlicesDataset((images[1500:], labels[1500:]), ["image", "label"], shuffle=False).batch(99)
net = nn.SequentialCell(block(1, 8), nn.MaxPool2d(2, 2), block(8, 16), nn.Flatten(), nn.Dense(16 * 16, 10))
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.02, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.fit(3, train, test, callbacks=[LossMonitor(60)], dataset_sink_mode=False)
