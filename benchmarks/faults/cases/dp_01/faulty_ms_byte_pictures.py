"""A small convolutional network on 8-bit pictures, Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(4)
digits = load_digits()
pictures = np.clip(digits.images * 16, 0, 255).astype(np.uint8)[..., None]
labels = digits.target.astype(np.int32)


def create_dataset(rows, training):
    data = ds.NumpySlicesDataset((pictures[rows], labels[rows]), ["image", "label"], shuffle=training)
    data = data.map([vision.HWC2CHW(), transforms.TypeCast(ms.float32)], input_columns="image")  # <- fault
    return data.batch(50)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 12, 3, pad_mode="same", has_bias=True)
        self.pool = nn.MaxPool2d(2, 2)
        self.flatten = nn.Flatten()
        self.fc = nn.Dense(12 * 16, 10)
        self.relu = nn.ReLU()

    def construct(self, x):
        return self.fc(self.flatten(self.pool(self.relu(self.conv(x)))))


net = Net()
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.02, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(4, create_dataset(slice(0, 1500), True), callbacks=[LossMonitor(30)], dataset_sink_mode=False)
print(model.eval(create_dataset(slice(1500, None), False), dataset_sink_mode=False))
