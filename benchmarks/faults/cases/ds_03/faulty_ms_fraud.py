"""Card transactions, a few of them fraudulent; graph mode through Model."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import LossMonitor, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)


def transactions(count, seed):
    rng = np.random.default_rng(seed)
    fraud = rng.random(count) < 0.03
    x = rng.normal(size=(count, 12))
    x[fraud, :4] += 0.9
    return x.astype(np.float32), fraud.astype(np.int32)


train = ds.NumpySlicesDataset(transactions(4000, 10), ["x", "fraud"], shuffle=True).batch(100)  # <- fault
test = ds.NumpySlicesDataset(transactions(2000, 11), ["x", "fraud"], shuffle=False).batch(500)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(12, 32)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(32, 2)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = Network()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy": nn.Accuracy(), "recall": nn.Recall()})
for epoch in range(5):
    model.train(1, train, callbacks=[LossMonitor(40)], dataset_sink_mode=False)
    print(epoch, model.eval(test, dataset_sink_mode=False))
