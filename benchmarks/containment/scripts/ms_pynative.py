"""A classifier of MindSpore in PyNative mode: a pipeline, a loss scaler, clipping, a list of rates, evaluation, checkpoints.

No dropout: MindSpore's own draws are not always the same on the CPU."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn, ops

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
generator = np.random.default_rng(0)
pictures = generator.normal(size=(48, 1, 8, 8)).astype(np.float32)
labels = (np.arange(48) % 3).astype(np.int32)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3, pad_mode="valid", has_bias=True)
        self.norm = nn.BatchNorm2d(4)
        self.head = nn.Dense(144, 3)

    def construct(self, x):
        x = ops.relu(self.norm(self.conv(x))).reshape((x.shape[0], -1))
        return self.head(x)


ms.save_checkpoint(Net(), "pretrained.ckpt")
model = Net()
ms.load_param_into_net(model, ms.load_checkpoint("pretrained.ckpt"))
model.head.bias.set_data(ms.Tensor(np.zeros(3, np.float32)))
data = ds.NumpySlicesDataset((pictures, labels), ["x", "y"], shuffle=True).batch(8)
criterion = nn.CrossEntropyLoss()
rates = nn.piecewise_constant_lr([4, 100], [0.1, 0.01])
optimizer = nn.Momentum(model.trainable_params(), rates, 0.9)
scaler = amp.DynamicLossScaler(2.0**10, 2, 100)
grad_of = ms.value_and_grad(lambda x, y: scaler.scale(criterion(model(x), y)), None, optimizer.parameters)
model.set_train()
for epoch in range(2):
    for x, y in data.create_tuple_iterator():
        loss, gradients = grad_of(x, y)
        gradients = scaler.unscale(gradients)
        if amp.all_finite(gradients):
            optimizer(ops.clip_by_global_norm(gradients, 1.0))
        scaler.adjust(amp.all_finite(gradients))
        print("loss", float(scaler.unscale(loss)))
slope = ms.grad(lambda x: criterion(model(x), ms.Tensor(labels[:8])))(ms.Tensor(pictures[:8]))
print("slope", float(slope.abs().sum()))
model.set_train(False)
for x, y in data.create_tuple_iterator():
    print("test", float(criterion(model(x), y)))
ms.save_checkpoint(model, "last.ckpt")
