"""A small LeNet on scikit-learn's digits, enlarged to 16 x 16; MindSpore, graph mode, Model.train."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)


def pipeline(images, labels, *, shuffle):
    images = np.kron(images / 16.0, np.ones((1, 2, 2)))[:, None]
    images = ((images - 0.3) / 0.37).astype(np.float32)
    return ds.NumpySlicesDataset((images, labels.astype(np.int32)), ["image", "label"], shuffle=shuffle).batch(64)


class LeNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.features = nn.SequentialCell(
            nn.Conv2d(1, 6, 3, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(6, 16, 3, pad_mode="valid", has_bias=True), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(),
        )  # fmt: skip
        self.drop = nn.Dropout(0.2)
        self.head = nn.SequentialCell(nn.Dense(64, 120), nn.ReLU(), nn.Dense(120, 84), nn.ReLU(), nn.Dense(84, 10))

    def construct(self, x):
        return self.head(self.drop(self.features(x)))


images, labels = load_digits(return_X_y=True)
parts = train_test_split(images.reshape(-1, 8, 8), labels, test_size=0.2, random_state=0)
train, test = pipeline(parts[0], parts[2], shuffle=True), pipeline(parts[1], parts[3], shuffle=False)

net = LeNet()
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.05, momentum=0.9)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"})
model.train(6, train, callbacks=[LossMonitor(train.get_dataset_size())], dataset_sink_mode=False)
print(model.eval(test, dataset_sink_mode=False))
