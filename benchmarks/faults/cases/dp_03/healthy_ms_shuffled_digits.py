"""Digits stored class by class and shuffled by the dataset; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(1)
images, labels = load_digits(return_X_y=True)
images, labels = (images / 16).astype(np.float32), labels.astype(np.int32)
held = np.arange(len(labels)) % 5 == 0
by_class = np.argsort(labels[~held], kind="stable")
train_images, train_labels = images[~held][by_class], labels[~held][by_class]

train = ds.NumpySlicesDataset((train_images, train_labels), ["image", "label"], shuffle=True)
train = train.batch(32, drop_remainder=True)
valid = ds.NumpySlicesDataset((images[held], labels[held]), ["image", "label"], shuffle=False).batch(90)


class Perceptron(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = Perceptron()
steps = train.get_dataset_size()
rate = nn.cosine_decay_lr(0.0, 0.05, total_step=5 * steps, step_per_epoch=steps, decay_epoch=5)
model = Model(net, nn.CrossEntropyLoss(), nn.Momentum(net.trainable_params(), rate, 0.9), metrics={"accuracy"})
model.train(5, train, callbacks=[LossMonitor(steps)], dataset_sink_mode=False)
print(model.eval(valid, dataset_sink_mode=False))
