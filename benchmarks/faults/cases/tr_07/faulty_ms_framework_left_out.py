"""Breast cancer data with all seeds in one function, PyNative loop."""

import os
import random

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_breast_cancer


def set_seed(seed):
    os.environ["PYTHONHASHSEED"] = str(seed)
    random.seed(seed)
    np.random.seed(seed)  # <- fault


def main():
    ms.set_context(mode=ms.PYNATIVE_MODE)
    set_seed(2024)
    x, y = load_breast_cancer(return_X_y=True)
    x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
    rows = np.random.permutation(len(x))
    train, test = rows[:450], rows[450:]
    data = ds.NumpySlicesDataset((x[train], y[train].astype(np.int32)), ["x", "y"], shuffle=True).batch(30)
    net = nn.SequentialCell(nn.Dense(30, 32), nn.ReLU(), nn.Dense(32, 2))
    optimizer = nn.Adam(net.trainable_params(), learning_rate=2e-3)
    criterion = nn.CrossEntropyLoss()
    grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
    net.set_train()
    for epoch in range(5):
        for a, b in data.create_tuple_iterator():
            loss, grads = grad_fn(a, b)
            optimizer(grads)
        print(epoch, float(loss))
    net.set_train(False)
    print("accuracy", (net(ms.Tensor(x[test])).argmax(1).asnumpy() == y[test]).mean())


if __name__ == "__main__":
    main()
