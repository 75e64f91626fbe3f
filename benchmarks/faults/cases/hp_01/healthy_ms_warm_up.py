"""Digits with a learning rate that warms up and decays along a cosine, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
EPOCHS = 5
x, y = load_digits(return_X_y=True)
order = np.random.permutation(len(x))
x, y = (x[order] / 16).astype(np.float32), y[order].astype(np.int32)
train = ds.NumpySlicesDataset((x[:1500], y[:1500]), ["x", "y"], shuffle=True).batch(50)
test = ds.NumpySlicesDataset((x[1500:], y[1500:]), ["x", "y"], shuffle=False).batch(99)

steps = train.get_dataset_size()
warm = nn.warmup_lr(0.1, steps, steps, 1)
cosine = nn.cosine_decay_lr(1e-4, 0.1, (EPOCHS - 1) * steps, steps, EPOCHS - 1)
net = nn.SequentialCell(nn.Dense(64, 64), nn.ReLU(), nn.Dense(64, 10))
optimizer = nn.Momentum(net.trainable_params(), warm + cosine, 0.9)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
for epoch in range(EPOCHS):
    net.set_train()
    for a, b in train.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
    net.set_train(False)
    right = sum(int((net(a).argmax(1) == b).sum()) for a, b in test.create_tuple_iterator())
    print(epoch, float(loss), right / (len(x) - 1500))
