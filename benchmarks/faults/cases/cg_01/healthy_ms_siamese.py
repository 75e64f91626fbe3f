"""Whether two short texts are about the same topic: one encoder for both sides, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import mint, nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(4)
rng = np.random.default_rng(4)


def texts(topic):
    common = rng.integers(40, 120, (len(topic), 10))
    hints = topic[:, None] * 10 + rng.integers(0, 10, common.shape)
    return np.where(rng.random(common.shape) < 0.6, hints, common).astype(np.int32)


first = rng.integers(0, 4, 1200)
same = rng.random(1200) < 0.5
second = np.where(same, first, (first + rng.integers(1, 4, 1200)) % 4)
columns = (texts(first), texts(second), same.astype(np.float32))
data = ds.NumpySlicesDataset(columns, ["left", "right", "same"], shuffle=True).batch(40)


class Encoder(nn.Cell):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(120, 24, embedding_table="normal")
        self.project = mint.nn.Linear(24, 24)

    def construct(self, ids):
        return self.project(self.words(ids).mean(axis=1))


class Pair(nn.Cell):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.out = mint.nn.Linear(24, 1)

    def construct(self, left, right):
        return self.out((self.encoder(left) - self.encoder(right)).abs()).squeeze(1)


net = Pair()
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-2)
criterion = nn.BCEWithLogitsLoss()
grad_fn = ms.value_and_grad(lambda a, b, t: criterion(net(a, b), t), None, optimizer.parameters)
net.set_train()
for epoch in range(5):
    losses = []
    for left, right, target in data.create_tuple_iterator():
        loss, grads = grad_fn(left, right, target)
        optimizer(grads)
        losses.append(float(loss))
    print(epoch, np.mean(losses))
