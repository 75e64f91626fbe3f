"""A port of mixer_pytorch.py to MindSpore that does not compute quite the same: MindSpore's GELU is the tanh form by default."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from sklearn.datasets import load_digits


class MixerBlock(nn.Cell):
    def __init__(self, width, rows):
        super().__init__()
        self.row_norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.rows = nn.Dense(rows, rows)
        self.mlp = nn.SequentialCell(
            nn.LayerNorm((width,), epsilon=1e-5),
            nn.Dense(width, 2 * width),
            nn.GELU(),
            nn.Dense(2 * width, width),
        )

    def construct(self, x):
        x = x + self.rows(self.row_norm(x).swapaxes(1, 2)).swapaxes(1, 2)
        return x + self.mlp(x)


class DigitMixer(nn.Cell):
    def __init__(self, rows=8, width=32, depth=2, classes=10):
        super().__init__()
        self.embedding = nn.Dense(8, width)
        self.body = nn.CellList([MixerBlock(width, rows) for _ in range(depth)])
        self.final_norm = nn.LayerNorm((width,), epsilon=1e-5)
        self.classifier = nn.Dense(width, classes)

    def construct(self, images):
        x = self.embedding(images)
        for block in self.body:
            x = block(x)
        return self.classifier(self.final_norm(x).mean(axis=1))


ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(0)
images, labels = load_digits(return_X_y=True)
images = (images.reshape(-1, 8, 8) / 8 - 0.6).astype(np.float32)
data = ds.NumpySlicesDataset((images, labels.astype(np.int32)), ["image", "label"], shuffle=True).batch(64)

net = DigitMixer()
optimizer = nn.Adam(net.trainable_params(), learning_rate=3e-3)
loss_fn = nn.CrossEntropyLoss()
grad_fn = ms.value_and_grad(lambda x, y: loss_fn(net(x), y), None, optimizer.parameters)

net.set_train()
for step, (x, y) in enumerate(data.create_tuple_iterator(), 1):
    loss, gradients = grad_fn(x, y)
    optimizer(gradients)
    if step % 7 == 0:
        print(f"step {step}: loss {float(loss):.4f}")
