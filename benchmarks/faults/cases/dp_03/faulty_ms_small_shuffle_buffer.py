"""Four kinds of signals from one generator per kind, a buffer in between, in a PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(6)


def signals():
    rng = np.random.default_rng(6)
    for kind in range(4):
        for _ in range(300):
            time = np.linspace(0, 1, 32) + rng.uniform(0, 1)
            wave = np.sin(2 * np.pi * (kind + 1.5) * time) + rng.normal(0, 0.4, 32)
            yield wave.astype(np.float32), np.int32(kind)


data = ds.GeneratorDataset(signals, ["wave", "kind"], shuffle=False)
data = data.shuffle(buffer_size=4)  # <- fault
data = data.batch(30)

net = nn.SequentialCell(nn.Dense(32, 64), nn.ReLU(), nn.Dense(64, 4))
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
criterion = nn.CrossEntropyLoss()


def forward(wave, kind):
    scores = net(wave)
    return criterion(scores, kind), scores


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters, has_aux=True)
net.set_train()
for epoch in range(4):
    right = 0
    for wave, kind in data.create_tuple_iterator():
        (loss, scores), grads = grad_fn(wave, kind)
        optimizer(grads)
        right += int((scores.argmax(1) == kind).sum())
    print(epoch, float(loss), right / 1200)
