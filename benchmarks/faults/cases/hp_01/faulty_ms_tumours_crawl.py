"""Benign or malignant, with a configuration and a trainer class in PyNative mode."""

from dataclasses import dataclass

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_breast_cancer


@dataclass
class Config:
    epochs: int = 6
    batch_size: int = 25
    learning_rate: float = 1e-7
    weight_decay: float = 0.01


class Trainer:
    def __init__(self, net, config):
        self.net, self.config = net, config
        self.loss_fn = nn.CrossEntropyLoss()
        self.optimizer = nn.AdamWeightDecay(  # <- fault
            net.trainable_params(),
            learning_rate=config.learning_rate,
            weight_decay=config.weight_decay,
        )
        self.grad_fn = ms.value_and_grad(self.forward, None, self.optimizer.parameters)

    def forward(self, x, y):
        return self.loss_fn(self.net(x), y)

    def fit(self, data):
        self.net.set_train()
        for epoch in range(self.config.epochs):
            losses = []
            for x, y in data.create_tuple_iterator():
                loss, grads = self.grad_fn(x, y)
                self.optimizer(grads)
                losses.append(float(loss))
            print(f"{epoch}: {np.mean(losses):.4f}")


ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(3)
config = Config()
x, y = load_breast_cancer(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, y.astype(np.int32)), ["x", "y"], shuffle=True).batch(config.batch_size)
net = nn.SequentialCell(nn.Dense(30, 32), nn.ReLU(), nn.Dense(32, 16), nn.ReLU(), nn.Dense(16, 2))
Trainer(net, config).fit(data)
