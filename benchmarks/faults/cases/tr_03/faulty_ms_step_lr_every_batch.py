"""Wine cultivars with StepLR of mindspore.experimental, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.experimental import optim
from sklearn.datasets import load_wine

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
x, y = load_wine(return_X_y=True)
x = ((x - x.mean(0)) / x.std(0)).astype(np.float32)
data = ds.NumpySlicesDataset((x, y.astype(np.int32)), ["x", "y"], shuffle=True).batch(16)


class Perceptron(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(13, 24)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(24, 3)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = Perceptron()
optimizer = optim.SGD(net.trainable_params(), lr=0.05, momentum=0.9)
scheduler = optim.lr_scheduler.StepLR(optimizer, step_size=5, gamma=0.5)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda a, b: criterion(net(a), b), None, optimizer.parameters)
net.set_train()
for epoch in range(12):
    total = 0.0
    for a, b in data.create_tuple_iterator():
        loss, grads = grad_fn(a, b)
        optimizer(grads)
        scheduler.step()  # <- fault
        total += float(loss)
    print(epoch, total / data.get_dataset_size())
