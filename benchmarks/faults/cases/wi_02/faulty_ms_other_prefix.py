"""A classifier of tumours takes over the encoder of an autoencoder from a checkpoint; Model.train in graph mode."""

import os
import tempfile

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model
from sklearn.datasets import load_breast_cancer

CHECKPOINT = os.path.join(tempfile.gettempdir(), "ms-autoencoder.ckpt")


def encoder():
    return nn.SequentialCell(nn.Dense(30, 24), nn.ReLU(), nn.Dense(24, 8), nn.ReLU())


class AutoEncoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = encoder()
        self.decoder = nn.SequentialCell(nn.Dense(8, 24), nn.ReLU(), nn.Dense(24, 30))

    def construct(self, x):
        return self.decoder(self.encoder(x))


class Classifier(nn.Cell):
    def __init__(self):
        super().__init__()
        self.backbone = encoder()
        self.output = nn.Dense(8, 2)

    def construct(self, x):
        return self.output(self.backbone(x))


ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(7)
x, y = load_breast_cancer(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
unlabelled = ds.NumpySlicesDataset((x, x), ["x", "y"], shuffle=True).batch(32)
auto = AutoEncoder()
model = Model(auto, nn.MSELoss(), nn.Adam(auto.trainable_params(), 2e-3))
model.train(6, unlabelled, callbacks=[LossMonitor(18)], dataset_sink_mode=False)
ms.save_checkpoint(auto, CHECKPOINT)

classifier = Classifier()
ms.load_param_into_net(classifier, ms.load_checkpoint(CHECKPOINT))  # <- fault
labelled = ds.NumpySlicesDataset((x[:100], y[:100].astype(np.int32)), ["x", "y"], shuffle=True).batch(20)
model = Model(classifier, nn.CrossEntropyLoss(), nn.Adam(classifier.trainable_params(), 2e-3), metrics={"accuracy"})
model.train(6, labelled, callbacks=[LossMonitor(5)], dataset_sink_mode=False)
