"""A small residual network on noisy colour patterns, in MindSpore."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.common.initializer import HeNormal

CLASSES = 6


def make_images(count, seed):
    patterns = np.random.default_rng(99).uniform(0, 255, (CLASSES, 3, 16, 16))
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, count)
    images = 0.4 * patterns[labels] + 0.6 * rng.uniform(0, 255, (count, 3, 16, 16))
    return images.astype(np.uint8), labels.astype(np.int32)


def to_dataset(images, labels, shuffle):
    pixels = images.astype(np.float32) / 255
    return ds.NumpySlicesDataset(((pixels - 0.5) / 0.22, labels), ["image", "label"], shuffle=shuffle)


def conv(in_planes, planes, size, stride=1):
    init = HeNormal(mode="fan_out", nonlinearity="relu")
    if size == 1:
        return nn.Conv2d(in_planes, planes, 1, stride, pad_mode="valid", has_bias=False, weight_init=init)
    return nn.Conv2d(in_planes, planes, size, stride, pad_mode="pad", padding=1, has_bias=False, weight_init=init)


def batch_norm(planes):
    return nn.BatchNorm2d(planes, eps=1e-5, momentum=0.9)


class BasicBlock(nn.Cell):
    def __init__(self, in_planes, planes, stride=1):
        super().__init__()
        self.conv1 = conv(in_planes, planes, 3, stride)
        self.bn1 = batch_norm(planes)
        self.conv2 = conv(planes, planes, 3)
        self.bn2 = batch_norm(planes)
        self.relu = nn.ReLU()
        self.downsample = None
        if stride != 1 or in_planes != planes:
            self.downsample = nn.SequentialCell(conv(in_planes, planes, 1, stride), batch_norm(planes))

    def construct(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + identity)


class ResNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = conv(3, 12, 3)
        self.bn1 = batch_norm(12)
        self.layer1 = nn.SequentialCell(BasicBlock(12, 12), BasicBlock(12, 12))
        self.layer2 = nn.SequentialCell(BasicBlock(12, 24, stride=2), BasicBlock(24, 24))
        self.fc = nn.Dense(24, CLASSES, has_bias=True)

    def construct(self, x):
        x = ops.relu(self.bn1(self.conv1(x)))
        x = self.layer2(self.layer1(x))
        return self.fc(x.mean((2, 3)))


ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(7)
train_set = to_dataset(*make_images(1024, seed=1), shuffle=True).batch(32)
test_set = to_dataset(*make_images(256, seed=2), shuffle=False).batch(64)
model = ResNet()
criterion = nn.CrossEntropyLoss(reduction="mean", label_smoothing=0.1)
rates = [0.02 * 0.2 ** (step // 30) for step in range(64)]
params = [{"params": model.trainable_params(), "weight_decay": 2e-3}]
optimizer = nn.SGD(params, learning_rate=rates, momentum=0.9, nesterov=False)
grad_fn = ms.value_and_grad(lambda images, labels: criterion(model(images), labels), None, optimizer.parameters)

for epoch in range(2):
    model.set_train(True)
    for i, (images, labels) in enumerate(train_set.create_tuple_iterator()):
        loss, grads = grad_fn(images, labels)
        grads = ops.clip_by_global_norm(grads, 0.5)
        optimizer(grads)
        if i % 10 == 9:
            print(f"epoch {epoch} batch {i + 1}: loss {float(loss):.4f}")
    model.set_train(False)
    correct = sum(int((model(images).argmax(1) == labels).sum()) for images, labels in test_set.create_tuple_iterator())
    print(f"epoch {epoch}: accuracy {correct / 256:.3f}")
