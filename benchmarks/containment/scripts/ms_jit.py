"""A regression of MindSpore whose step is compiled as a function, with batches made by hand and a schedule that is stepped."""

import random

import mindspore as ms
import numpy as np
from mindspore import nn, ops
from mindspore.experimental import optim

ms.set_context(mode=ms.PYNATIVE_MODE)
ms.set_seed(3)
np.random.seed(3)
random.seed(3)
inputs = np.random.normal(size=(64, 4)).astype(np.float32)
targets = inputs[:, :1] * 2
model = nn.SequentialCell(nn.Dense(4, 8), nn.Tanh(), nn.Dense(8, 1))
loss_of = nn.MSELoss()
second = nn.SGD(model.trainable_params(), 0.05)


def forward(x, y):
    return loss_of(model(x), y)


grad_of = ms.value_and_grad(forward, None, second.parameters)


def step_of(x, y):
    loss, gradients = grad_of(x, y)
    second(gradients)
    return loss


compiled_step = ms.jit(step_of)
order = list(range(64))
for step in range(3):
    random.shuffle(order)
    x, y = ms.Tensor(inputs[order[:16]]), ms.Tensor(targets[order[:16]])
    print("compiled", float(compiled_step(x, y)))
optimizer = optim.SGD(model.trainable_params(), 0.05)
schedule = optim.lr_scheduler.StepLR(optimizer, 2)
for step in range(4):
    random.shuffle(order)
    x = ms.Tensor(inputs[order[:16]]) + ops.randn(16, 4) * 0.01
    loss, gradients = grad_of(x, ms.Tensor(targets[order[:16]]))
    optimizer(gradients)
    schedule.step()
    print("loss", float(loss))
