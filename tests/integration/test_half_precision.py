"""A port of a script that computes in bfloat16: other kernels round otherwise, and rounding switches units on and off."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.test_reference import compared

REFERENCE = """
import torch
from sklearn.datasets import load_digits
from torch import nn

digits = load_digits()
images, labels = torch.tensor(digits.data / 16.0 - 0.3, dtype=torch.float32), torch.tensor(digits.target)


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width, eps=1e-5)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(torch.relu(self.up(self.norm(x))))


torch.manual_seed(1)
model = nn.Sequential(nn.Linear(64, 32), Residual(32), Residual(32), nn.LayerNorm(32, eps=1e-5), nn.Linear(32, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
for rows in torch.randperm(1792).view(28, 64):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        scores = model(images[rows])
    loss = nn.functional.cross_entropy(scores.float(), labels[rows])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
# MindSpore has no kernels that compute in bfloat16 on CPUs: what goes into products and comes out of them is rounded.
PORT = """
import mindspore as ms
import numpy as np
from mindspore import Tensor, nn, ops
from mindspore.common.initializer import Uniform
from mindspore.experimental import optim
from sklearn.datasets import load_digits


def half(x):
    return x.astype(ms.bfloat16).astype(ms.float32)


class HalfDense(nn.Dense):
    def __init__(self, n_in, n_out):
        super().__init__(n_in, n_out, weight_init=Uniform(n_in**-0.5), bias_init=Uniform(n_in**-0.5))

    def construct(self, x):
        return half(ops.matmul(half(x), half(self.weight).T) + half(self.bias))


class Block(nn.Cell):
    def __init__(self, width):
        super().__init__()
        self.ln = nn.LayerNorm((width,), epsilon=1e-5)
        self.fc1, self.fc2 = HalfDense(width, 2 * width), HalfDense(2 * width, width)

    def construct(self, x):
        return x + self.fc2(ops.relu(self.fc1(self.ln(x))))


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.stem = HalfDense(64, 32)
        self.blocks = nn.SequentialCell(Block(32), Block(32))
        self.ln = nn.LayerNorm((32,), epsilon=1e-5)
        self.head = HalfDense(32, 10)

    def construct(self, x):
        return self.head(self.ln(self.blocks(self.stem(x))))


images, labels = load_digits(return_X_y=True)
images, labels = (images / 16.0 - 0.3).astype(np.float32), labels.astype(np.int32)
net = Net()
opt = optim.AdamW(net.trainable_params(), lr={rate}, weight_decay=0.01)
step = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, opt.parameters)
for rows in np.random.permutation(1792).reshape(28, 64):
    opt(step(Tensor(images[rows]), Tensor(labels[rows]))[1])
"""


@pytest.mark.timeout(900)
@pytest.mark.parametrize("rate", ["0.003", "0.004"])
def test_port_in_bfloat16(tmp_path: Path, rate: str) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "mine.py").write_text(PORT.format(rate=rate))
    parted = compared(tmp_path, "mine.py", "ref.py")["first_divergence"]
    if rate == "0.003":
        assert parted is None, parted
    else:
        assert (parted["step"], parted["phase"]) == (0, "update"), parted
        assert "(lr) of the optimizer is 0.004" in parted["cause"]
