"""Large batches with a rate that was raised along with them, in a PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(3)
x, y = load_digits(return_X_y=True)
x, y = (x / 16).astype(np.float32), y.astype(np.int32)
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(512)


class Network(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = Network()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-2)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
net.set_train()
for epoch in range(20):
    for a, b in data.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
    if epoch % 5 == 4:
        print(epoch, round(float(loss), 4))
