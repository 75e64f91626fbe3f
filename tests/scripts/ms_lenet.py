"""LeNet-5 on scikit-learn's digits at 32x32, trained in one of the ways that MindSpore has: ms_lenet.py MODE WAY."""

import sys

import mindspore as ms
import mindspore.dataset as ds
import numpy as np
from mindspore import amp, nn, ops
from mindspore.train import Callback, Model
from sklearn.datasets import load_digits

mode, way = sys.argv[1:3]
ms.set_context(mode=ms.GRAPH_MODE if mode == "graph" else ms.PYNATIVE_MODE, device_target="CPU")
ms.set_seed(1)
digits = load_digits()
images = np.kron(digits.images / 16 - 0.3, np.ones((4, 4)))[:, None].astype(np.float32)
labels = digits.target.astype(np.int32)


def dataset(first, last):
    data = ds.NumpySlicesDataset((images[first:last], labels[first:last]), ["image", "label"], shuffle=first == 0)
    return data.batch(32, drop_remainder=True)


class LeNet5(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, pad_mode="valid", has_bias=True)
        self.conv2 = nn.Conv2d(6, 16, 5, pad_mode="valid", has_bias=True)
        self.fc1 = nn.Dense(16 * 5 * 5, 120)
        self.fc2 = nn.Dense(120, 84)
        self.fc3 = nn.Dense(84, 10)
        self.pool = nn.MaxPool2d(2, 2)
        self.relu = nn.ReLU()
        self.flatten = nn.Flatten()

    def construct(self, x):
        x = self.pool(self.relu(self.conv1(x)))
        x = self.pool(self.relu(self.conv2(x)))
        x = self.relu(self.fc1(self.flatten(x)))
        return self.fc3(self.relu(self.fc2(x)))


class Printed(Callback):
    """Every loss with all of its digits; with a sink, what a whole epoch ends with."""

    def on_train_step_end(self, run_context):
        result = run_context.original_args().net_outputs
        show(result[0] if isinstance(result, tuple) else result)


def show(loss):
    print(float(loss.asnumpy().mean()).hex())


train, test = dataset(0, 320), dataset(640, 768)
net, loss_fn = LeNet5(), nn.CrossEntropyLoss()
scale = 1024.0 if way in {"fixed", "o2", "build"} else 1.0
optimizer = nn.Adam(net.trainable_params(), learning_rate=0.002, loss_scale=scale)


def fixed():
    """The only kind of manager that a CPU takes."""
    return amp.FixedLossScaleManager(scale, drop_overflow_update=False)


if way in {"train", "sink", "fit", "o2", "fixed", "manager"}:
    manager = fixed() if scale != 1 else amp.DynamicLossScaleManager(1024, scale_window=5) if way == "manager" else None
    level = "O2" if way == "o2" else "O0"
    model = Model(net, loss_fn, optimizer, metrics={"accuracy"}, amp_level=level, loss_scale_manager=manager)
    if way == "fit":
        model.fit(2, train, test, callbacks=[Printed()], dataset_sink_mode=False, valid_dataset_sink_mode=False)
    else:
        model.train(2, train, callbacks=[Printed()], dataset_sink_mode=way == "sink")
    print(model.eval(test, dataset_sink_mode=False))
elif way in {"build", "cell"}:
    if way == "build":
        step = amp.build_train_network(net, optimizer, loss_fn, level="O2", loss_scale_manager=fixed())
    else:
        update = nn.DynamicLossScaleUpdateCell(loss_scale_value=1024, scale_factor=2, scale_window=5)
        step = nn.TrainOneStepWithLossScaleCell(nn.WithLossCell(net, loss_fn), optimizer, scale_sense=update)
    step.set_train()
    batches = train.create_tuple_iterator(num_epochs=2)
    for _ in range(2):
        for image, label in batches:
            result = step(image, label)
            show(result[0] if isinstance(result, tuple) else result)
else:
    net = amp.auto_mixed_precision(net, "O2")
    scaler = amp.DynamicLossScaler(1024, 2, 50) if way == "scaler" else amp.StaticLossScaler(1024.0)

    def forward(image, label):
        return scaler.scale(loss_fn(net(image), label))

    gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)
    net.set_train()
    batches = train.create_tuple_iterator(num_epochs=2)
    for _ in range(2):
        for image, label in batches:
            loss, gradients = gradients_of(image, label)
            gradients = scaler.unscale(gradients)
            finite = amp.all_finite(gradients)
            if finite:
                optimizer(gradients)
            scaler.adjust(finite)
            show(scaler.unscale(loss))
