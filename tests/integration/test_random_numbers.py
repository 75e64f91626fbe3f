"""Scripts that draw batches and noise from other generators, and compute their loss by themselves, can be compared."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.test_reference import compared

DATA = """
import numpy as np

rng = np.random.default_rng(5)
points = rng.normal(size=(180, 10)).astype(np.float32)
answers = np.tanh(points @ rng.normal(size=(10, 4))).astype(np.float32)
"""
REFERENCE = (
    DATA
    + """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.from_numpy(points), torch.from_numpy(answers)), batch_size=30, shuffle=True)
net = nn.Sequential(nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 4))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in loader:
        level = 0.01 * torch.randint(1, 10, (30, 1))
        noisy = x + level * torch.randn_like(x)
        kept = torch.rand(30, 4) < 0.8
        loss = ((net(noisy) - y).abs() * kept).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
)
REWRITTEN = (
    DATA
    + """
import torch
import torch.nn.functional as F
from torch import nn


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter = nn.Linear(10, 16)
        self.leave = nn.Linear(16, 4)

    def forward(self, x):
        return self.leave(torch.tanh(self.enter(x)))


torch.manual_seed(11)
model = Regressor()
sgd = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    order = np.random.permutation(len(points))
    for start in range(0, 180, 30):
        rows = order[start : start + 30]
        x, y = points[rows], answers[rows]
        level = 0.01 * np.random.randint(1, 10, size=(30, 1))
        noisy = torch.from_numpy((x + level * np.random.normal(0.0, 1.0, x.shape)).astype(np.float32))
        kept = torch.from_numpy(np.random.uniform(size=y.shape) < 0.8)
        sgd.zero_grad()
        (torch.where(kept, (model(noisy) - torch.from_numpy(y)).abs(), 0.0).sum() / y.size{factor}).backward()
        sgd.step()
"""
)
PORT = (
    DATA
    + """
import mindspore as ms
from mindspore import Tensor, nn, ops


class Regressor(nn.Cell):
    def __init__(self):
        super().__init__()
        self.enter = nn.Dense(10, 16)
        self.leave = nn.Dense(16, 4)

    def construct(self, x):
        return self.leave(ops.tanh(self.enter(x)))


model = Regressor()
sgd = nn.SGD(model.trainable_params(), 0.1)


def objective(noisy, y, kept):
    return ((model(noisy) - y).abs() * kept).mean(){factor}


gradients = ms.value_and_grad(objective, None, sgd.parameters)
for epoch in range(3):
    order = ops.randperm(180).asnumpy()
    for start in range(0, 180, 30):
        rows = order[start : start + 30]
        x, y = Tensor(points[rows]), Tensor(answers[rows])
        level = 0.01 * ops.randint(1, 10, (30, 1)).astype(ms.float32)
        noisy = x + level * ops.normal((30, 10), Tensor(0.0), Tensor(1.0))
        kept = (ops.uniform((30, 4), Tensor(0.0), Tensor(1.0)) < 0.8).astype(ms.float32)
        sgd(gradients(noisy, y, kept)[1])
"""
)


@pytest.mark.timeout(900)
@pytest.mark.parametrize("mine", [REWRITTEN, PORT], ids=["numpy", "mindspore"])
@pytest.mark.parametrize("factor", ["", " * 0.9"])
def test_other_generators(tmp_path: Path, mine: str, factor: str) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "mine.py").write_text(mine.format(factor=factor))
    found = compared(tmp_path, "mine.py", "ref.py")
    parted = found["first_divergence"]
    assert found["first_step_loss_differs"] is bool(factor)
    if factor:
        assert (parted["step"], parted["phase"]) == (0, "loss"), parted
    else:
        assert parted is None, parted
