"""Digits in mixed precision O2 with a fixed loss scale; Model.train in graph mode."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn
from mindspore.train import Callback, Model
from sklearn.datasets import load_digits

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
x, y = load_digits(return_X_y=True)
data = ds.NumpySlicesDataset(((x / 16).astype(np.float32), y.astype(np.int32)), ["x", "y"], shuffle=True).batch(50)


class Progress(Callback):
    def on_train_epoch_end(self, run_context):
        params = run_context.original_args()
        print(params.cur_epoch_num, float(params.net_outputs))


class MlpNet(nn.Cell):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Dense(64, 64)
        self.relu = nn.ReLU()
        self.fc2 = nn.Dense(64, 10)

    def construct(self, x):
        x = self.relu(self.fc1(x))
        return self.fc2(x)


net = MlpNet()
optimizer = nn.Momentum(net.trainable_params(), learning_rate=0.02, momentum=0.9)  # <- fault
manager = amp.FixedLossScaleManager(loss_scale=1024.0, drop_overflow_update=False)  # <- fault
model = Model(net, nn.CrossEntropyLoss(), optimizer, metrics={"accuracy"}, amp_level="O2", loss_scale_manager=manager)
model.train(4, data, callbacks=[Progress()], dataset_sink_mode=False)
print(model.eval(data, dataset_sink_mode=False))
