"""Digits; the training pictures are shifted, those for validation do not. Model.fit in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(8)
digits = load_digits()
order = np.random.permutation(len(digits.images))
pictures = np.clip(digits.images * 16, 0, 255).astype(np.uint8)[order, ..., None]
labels = digits.target.astype(np.int32)[order]


def create_dataset(rows, do_train):
    data = ds.NumpySlicesDataset((pictures[rows], labels[rows]), ["image", "label"], shuffle=do_train)
    operations = []
    if do_train:
        operations += [vision.RandomCrop((8, 8), (1, 1, 1, 1))]
    operations += [vision.Rescale(1.0 / 255.0, 0.0), vision.Normalize([0.306], [0.375]), vision.HWC2CHW()]
    return data.map(operations, "image").batch(50)


net = nn.SequentialCell(
    nn.Conv2d(1, 16, 3, pad_mode="pad", padding=1, has_bias=True, weight_init="he_normal"),
    nn.ReLU(),
    nn.MaxPool2d(2, 2),
    nn.Flatten(),
    nn.Dense(16 * 16, 10),
)
model = Model(net, nn.CrossEntropyLoss(), nn.Adam(net.trainable_params(), 3e-3), metrics={"accuracy"})
model.fit(
    6,
    create_dataset(slice(0, 1400), True),
    create_dataset(slice(1400, None), False),
    callbacks=[LossMonitor(28)],
    dataset_sink_mode=False,
)
