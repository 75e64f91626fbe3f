"""Handwritten digits with the labels of two annotators, trained through Model.train."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(5)
rng = np.random.default_rng(5)

images, digits = load_digits(return_X_y=True)
images = (images / 16.0).astype(np.float32)
order = rng.permutation(len(images))
images, digits = images[order], digits[order].astype(np.int32)

# the second annotator worked on a third of the pictures
labels = digits.copy()
second = rng.random(len(labels)) < 0.33
confused = second & (rng.random(len(labels)) < 0.45)
labels[confused] = rng.integers(0, 10, confused.sum())

train = ds.NumpySlicesDataset((images[:1500], labels[:1500]), ["image", "label"], shuffle=True).batch(50)  # <- fault
test = ds.NumpySlicesDataset((images[1500:], digits[1500:]), ["image", "label"], shuffle=False).batch(99)
net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 10))
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 3e-3), metrics={"accuracy"})
model.train(10, train, callbacks=[LossMonitor(30)], dataset_sink_mode=False)
print(model.eval(test, dataset_sink_mode=False))
