"""A regression of MindSpore in graph mode: `Model.train` with a loss scale, then its evaluation."""

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import nn
from mindspore.train import Callback, Model

ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(0)
inputs = np.random.default_rng(0).normal(size=(48, 4)).astype(np.float32)
targets = inputs[:, :1] - inputs[:, 1:2]


class Printed(Callback):
    def on_train_step_end(self, run_context):
        outputs = run_context.original_args().net_outputs
        print("loss", float((outputs[0] if isinstance(outputs, tuple) else outputs).asnumpy()))


model = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
data = ds.NumpySlicesDataset((inputs, targets), ["x", "y"], shuffle=True).batch(12)
manager = ms.amp.FixedLossScaleManager(2**10, drop_overflow_update=False)
optimizer = nn.Adam(model.trainable_params(), 0.01, loss_scale=2.0**10)
trained = Model(model, nn.MSELoss(), optimizer, metrics={"mae"}, loss_scale_manager=manager)
trained.train(2, data, callbacks=[Printed()], dataset_sink_mode=False)
print(trained.eval(data, dataset_sink_mode=False))
