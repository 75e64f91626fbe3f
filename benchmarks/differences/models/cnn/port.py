"""Handwritten digits with a small convolutional network, ported from PyTorch."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.common.initializer import HeNormal
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

EPOCHS = 4
BATCH = 64

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)

digits = load_digits()
images = ((digits.images / 16.0 - 0.305) / 0.376).astype(np.float32)[:, None]
labels = digits.target.astype(np.int32)

# The same order as in the PyTorch script, one epoch behind the other.
rng = np.random.default_rng(1)
order = np.concatenate([rng.permutation(1536) for _ in range(EPOCHS)])
train = ds.NumpySlicesDataset((images[order], labels[order]), ["image", "label"], shuffle=False).batch(BATCH)
test = ds.NumpySlicesDataset((images[1536:], labels[1536:]), ["image", "label"], shuffle=False).batch(87)


def conv3x3(channels_in, channels_out, stride=1):
    return nn.Conv2d(
        channels_in,
        channels_out,
        3,
        stride,
        pad_mode="pad",
        padding=1,
        weight_init=HeNormal(),
    )


class DigitNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = conv3x3(1, 16)
        self.bn1 = nn.BatchNorm2d(16, eps=1e-5, momentum=0.9)
        self.conv2 = conv3x3(16, 32, stride=2)
        self.bn2 = nn.BatchNorm2d(32, eps=1e-5, momentum=0.9)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()
        self.fc1 = nn.Dense(32 * 4 * 4, 64)
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.bn1(self.conv1(x)))
        x = self.relu(self.bn2(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc2(x)


net = DigitNet()
loss_fn = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.0)
rates = nn.piecewise_constant_lr([30, 60, len(order) // BATCH], [0.02, 0.006, 0.0018])
# As a group, so that gamma and beta decay too.
params = [{"params": net.trainable_params()}]
optimizer = nn.SGD(params, learning_rate=rates, momentum=0.9, weight_decay=1e-3, nesterov=True)

model = Model(net, loss_fn=loss_fn, optimizer=optimizer, metrics={"accuracy"})
model.train(1, train, callbacks=[LossMonitor(8)], dataset_sink_mode=False)
print("accuracy on held-out digits:", model.eval(test, dataset_sink_mode=False)["accuracy"])
