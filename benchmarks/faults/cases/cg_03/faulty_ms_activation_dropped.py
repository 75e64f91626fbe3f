"""A convolutional network for the digits with batch normalisation and an activation after each convolution."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from sklearn.datasets import load_digits

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 8, 3, pad_mode="pad", padding=1, weight_init="he_normal")
        self.bn1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 16, 3, pad_mode="pad", padding=1, weight_init="he_normal")
        self.bn2 = nn.BatchNorm2d(16)
        self.pool = nn.MaxPool2d(2, 2)
        self.fc = nn.Dense(16 * 16, 10)

    def construct(self, x):
        x = ops.relu(self.bn1(self.conv1(x)))
        x = self.conv2(x)
        ops.relu(self.bn2(x))  # <- fault
        x = self.pool(x)
        return self.fc(x.reshape(x.shape[0], -1))


digits = load_digits()
images, labels = (digits.images[:, None] / 16).astype(np.float32), digits.target.astype(np.int32)
data = ds.NumpySlicesDataset((images, labels), ["image", "label"], shuffle=True).batch(60)
net = Net()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
criterion = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda x, y: criterion(net(x), y), None, optimizer.parameters)
net.set_train()
for epoch in range(3):
    for x, y in data.create_tuple_iterator():
        loss, grads = grad_fn(x, y)
        optimizer(grads)
    print(epoch, float(loss))
