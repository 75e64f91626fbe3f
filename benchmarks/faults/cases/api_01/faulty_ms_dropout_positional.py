"""Breast cancer data, a perceptron with dropout behind each hidden layer; ported from a PyTorch script."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_breast_cancer

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)
x, y = load_breast_cancer(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
train = ds.NumpySlicesDataset((x[:450], y[:450].astype(np.int32)), ["x", "y"], shuffle=True).batch(32)
test = ds.NumpySlicesDataset((x[450:], y[450:].astype(np.int32)), ["x", "y"], shuffle=False).batch(119)


class Perceptron(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(30, 64)
        self.fc2 = nn.Dense(64, 32)
        self.dropout = nn.Dropout(0.1)  # <- fault
        self.out = nn.Dense(32, 2)

    def construct(self, x):
        x = self.dropout(ops.relu(self.fc1(x)))
        x = self.dropout(ops.relu(self.fc2(x)))
        return self.out(x)


net = Perceptron()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
for epoch in range(6):
    net.set_train()
    total = 0.0
    for a, b in train.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
        total += float(loss)
    net.set_train(False)
    right = sum(int((net(a).argmax(1) == b).sum()) for a, b in test.create_tuple_iterator())
    print(epoch, total / train.get_dataset_size(), right / 119)
