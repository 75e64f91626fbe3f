"""Three kinds of parts from four measurements that overlap, in a PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(2)
rng = np.random.default_rng(2)
centres = np.array([[1.2, 0, 0, 0.5], [-0.8, 1.0, 0, 0], [0, -1.0, 0.9, -0.5]])
kind = rng.integers(0, 3, 1500).astype(np.int32)
x = (centres[kind] + rng.normal(0, 0.75, (1500, 4))).astype(np.float32)

train = ds.NumpySlicesDataset((x[:1200], kind[:1200]), ["x", "kind"], shuffle=True).batch(60)
valid = ds.NumpySlicesDataset((x[1200:], kind[1200:]), ["x", "kind"], shuffle=False).batch(100)


class Mlp(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(4, 24)
        self.tanh = nn.Tanh()
        self.fc2 = nn.Dense(24, 3)

    def construct(self, x):
        x = self.tanh(self.fc1(x))
        return self.fc2(x)


net = Mlp()
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
for epoch in range(7):
    net.set_train()
    for a, b in train.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
    net.set_train(False)
    right = sum(int((net(a).argmax(1) == b).sum()) for a, b in valid.create_tuple_iterator())
    print(epoch, float(loss), right / 300)
