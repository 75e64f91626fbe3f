"""A small network learns the digits from a larger one as well as from the labels, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
T = 3.0
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(60)
teacher = nn.SequentialCell(nn.Dense(64, 96), nn.ReLU(), nn.Dense(96, 10))
student = nn.SequentialCell(nn.Dense(64, 24), nn.ReLU(), nn.Dense(24, 10))


def teach(a, b):
    return ops.cross_entropy(teacher(a), b)


def learn(a, b):
    scores = student(a)
    wanted = ops.stop_gradient(ops.softmax(teacher(a) / T, axis=1))
    soft = ops.kl_div(ops.log_softmax(scores / T, axis=1), wanted, reduction="batchmean")
    return 0.5 * T * T * soft + 0.5 * ops.cross_entropy(scores, b)


def fit(net, forward, epochs):
    optimizer = nn.Adam(net.trainable_params(), learning_rate=3e-3)
    grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
    net.set_train()
    for epoch in range(epochs):
        for a, b in data.create_tuple_iterator():
            loss, grads = grad_fn(a, b)
            optimizer(grads)
        print(epoch, float(loss))
    net.set_train(False)


fit(teacher, teach, 3)
fit(student, learn, 4)
scores = student(ms.Tensor((x / 16).astype(np.float32)))
print("accuracy", (scores.argmax(1).asnumpy() == y).mean())
