"""Wine cultivars; Model.fit with early stopping on the validation loss and the best weights restored."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import EarlyStopping, LossMonitor, Model
from sklearn.datasets import load_wine

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(7)
x, y = load_wine(return_X_y=True)
order = np.random.permutation(len(x))
x, y = x[order], y[order].astype(np.int32)
x = ((x - x[:120].mean(0)) / x[:120].std(0)).astype(np.float32)
train = ds.NumpySlicesDataset((x[:120], y[:120]), ["x", "y"], shuffle=True).batch(12)
valid = ds.NumpySlicesDataset((x[120:], y[120:]), ["x", "y"], shuffle=False).batch(58)


class Perceptron(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(13, 16)
        self.tanh = nn.Tanh()
        self.fc2 = nn.Dense(16, 3)

    def construct(self, x):
        x = self.tanh(self.fc1(x))
        return self.fc2(x)


net = Perceptron()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-2)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"eval_loss": nn.Loss(), "accuracy": nn.Accuracy()})
stop = EarlyStopping(monitor="eval_loss", patience=4, restore_best_weights=True, verbose=True)
model.fit(30, train, valid, callbacks=[LossMonitor(10), stop], dataset_sink_mode=False)
