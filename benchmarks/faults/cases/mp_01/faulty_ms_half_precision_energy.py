"""Signals sorted by an energy feature inside a network that computes in float16; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn, ops
from mindspore.train import Callback, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(3)
rng = np.random.default_rng(3)
kind = rng.integers(0, 3, 900).astype(np.int32)
signals = (rng.normal(0, 1, (900, 64)) * (1 + kind[:, None])).astype(np.float32)


class Energy(nn.Cell):
    def __init__(self):
        super().__init__()
        self.mix = nn.Dense(64, 64, weight_init="normal")
        self.mix.weight.set_data(ms.Tensor(np.eye(64), ms.float32) * 16)
        self.out = nn.SequentialCell(nn.Dense(1, 16), nn.Tanh(), nn.Dense(16, 3))

    def construct(self, x):
        h = self.mix(x).astype(ms.float16)
        energy = (h * h).sum(axis=1, keepdims=True)  # <- fault
        return self.out(ops.sqrt(energy).astype(ms.float32) / 100)


class Progress(Callback):
    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        print(params.cur_epoch_num, float(params.net_outputs))


net = Energy()
net.mix.to_float(ms.float16)
data = ds.NumpySlicesDataset((signals, kind), ["signal", "kind"], shuffle=True).batch(30)
optimizer = nn.Adam(net.trainable_params(), learning_rate=5e-3)
model = Model(net, nn.CrossEntropyLoss(), optimizer)
model.train(4, data, callbacks=[Progress()], dataset_sink_mode=False)
