"""Wine cultivars; the weights are set by hand before training, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.common.initializer import Constant, initializer
from sklearn.datasets import load_wine

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(2)
x, y = load_wine(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, y.astype(np.int32)), ["x", "y"], shuffle=True).batch(16)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(13, 32)
        self.fc2 = nn.Dense(32, 16)
        self.fc3 = nn.Dense(16, 3)
        self.act = nn.Tanh()
        self.init_weights()

    def init_weights(self):
        for _, cell in self.cells_and_names():
            if isinstance(cell, nn.Dense):
                cell.weight.set_data(initializer(Constant(0.05), cell.weight.shape, cell.weight.dtype))  # <- fault
                cell.bias.set_data(initializer("zeros", cell.bias.shape, cell.bias.dtype))

    def construct(self, x):
        return self.fc3(self.act(self.fc2(self.act(self.fc1(x)))))


net = Net()
optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
net.set_train()
for epoch in range(8):
    for a, b in data.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
    print(epoch, float(loss))
