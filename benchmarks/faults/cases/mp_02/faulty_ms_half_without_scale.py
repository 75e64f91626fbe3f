"""Wear of a tool in metres from eight readings; the network computes in float16, PyNative loop."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(1)
UNIT = 1e-4  # the network predicts tenths of a millimetre
rng = np.random.default_rng(1)
x = rng.normal(0, 1, (1200, 8)).astype(np.float32)
y = (UNIT * (np.sin(x[:, :1]) + 0.5 * x[:, 1:2])).astype(np.float32)
data = ds.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(40)
net = nn.SequentialCell(nn.Dense(8, 32), nn.Tanh(), nn.Dense(32, 32), nn.Tanh(), nn.Dense(32, 1))
net = amp.auto_mixed_precision(net, "O2")
optimizer = nn.Adam(net.trainable_params(), learning_rate=1e-3)
criterion = nn.MSELoss()


def forward(a, b):
    return criterion(net(a).astype(ms.float32) * UNIT, b)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
net.set_train()
for epoch in range(5):
    total = 0.0
    for a, b in data.create_tuple_iterator():
        loss, grads = grad_fn(a, b)  # <- fault
        optimizer(grads)
        total += float(loss)
    print(epoch, total / data.get_dataset_size())
