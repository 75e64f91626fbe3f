"""Digits with one pipeline for training and one for validation, in a PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(8)
digits = load_digits()
order = np.random.permutation(len(digits.images))
pictures = np.clip(digits.images * 16, 0, 255).astype(np.uint8)[order, ..., None]
labels = digits.target.astype(np.int32)[order]


def train_pipeline():
    data = ds.NumpySlicesDataset((pictures[:1400], labels[:1400]), ["image", "label"], shuffle=True)
    data = data.map([vision.Rescale(1 / 255.0, 0.0), vision.Normalize([0.306], [0.375]), vision.HWC2CHW()], "image")
    return data.batch(50)


def eval_pipeline():
    data = ds.NumpySlicesDataset((pictures[1400:], labels[1400:]), ["image", "label"], shuffle=False)
    data = data.map([vision.Rescale(1 / 255.0, 0.0), vision.HWC2CHW()], "image")  # <- fault
    return data.batch(100)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(64, 64)
        self.out = nn.Dense(64, 10)

    def construct(self, x):
        return self.out(ops.relu(self.hidden(x.reshape(x.shape[0], -1))))


net = Net()
optimizer = nn.Adam(net.trainable_params(), 2e-3)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)
train, valid = train_pipeline(), eval_pipeline()
for epoch in range(4):
    net.set_train()
    for x, y in train.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
    net.set_train(False)
    right = sum(int((net(x).argmax(1) == y).sum()) for x, y in valid.create_tuple_iterator())
    print(epoch, float(loss), right / (len(labels) - 1400))
