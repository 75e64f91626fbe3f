"""Layers in float64: what is kept of their own rounding and of what they make of noise, and what it decides."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest
from integration.commands import TRUELINE, run
from integration.test_reference import compared

from trueline.recorder.alignment import OwnError
from trueline.store import Run

PYTORCH = """
import torch
from torch import nn


class Mine(nn.Module):
    def forward(self, x):
        return x * 2


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 8), nn.LayerNorm(8), nn.ReLU(inplace=True), Mine(), nn.Dropout(0.5), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for _ in range(2):
    # Rows that hardly vary: what is normalised after them carries noise far.
    x = torch.randn(16, 6) * 1e-3 + 4
    loss = nn.functional.cross_entropy(net(x), torch.zeros(16, dtype=torch.long))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""
MINDSPORE = """
import mindspore as ms
import numpy as np
from mindspore import nn, ops

ms.set_seed(0)
ms.set_context(mode=ms.PYNATIVE_MODE)


class Mine(nn.Cell):
    def construct(self, x):
        return x * 2


net = nn.SequentialCell(nn.Dense(6, 8), nn.LayerNorm((8,)), nn.ReLU(), Mine(), nn.Dropout(p=0.5), nn.Dense(8, 2))
optimizer = nn.SGD(net.trainable_params(), 0.1)
net.set_train()
step = ms.value_and_grad(lambda x, y: ops.cross_entropy(net(x), y), None, optimizer.parameters)
for _ in range(2):
    x = ms.Tensor(np.random.default_rng(0).normal(4, 1e-3, (16, 6)).astype(np.float32))
    loss, gradients = step(x, ops.zeros(16, ms.int32))
    optimizer(gradients)
"""


@pytest.mark.parametrize("script", [PYTORCH, MINDSPORE], ids=["pytorch", "mindspore"])
def test_rounding_and_amplification_of_layers(tmp_path: Path, script: str) -> None:
    (tmp_path / "script.py").write_text(script)
    finished = run(
        [*TRUELINE, "run", "--name", "aligned", "--as-reference", "script.py"], tmp_path, tmp_path / "runs", longest=300
    )
    assert finished.returncode == 0, finished.stderr
    recorded = Run(tmp_path / "runs" / "aligned")
    assert recorded.info.recorder_error is None
    told = msgspec.json.decode(recorded.meta["alignment"])["own_errors"]
    found = msgspec.convert(told, dict[str, dict[int, OwnError]], strict=False)
    # Neither the script's own layer nor dropout; the activation, which rounds nothing, is there for what it carries.
    assert sorted(found) == ["net.0", "net.1", "net.2", "net.5"]
    for errors in found.values():
        assert errors.keys() == {0}
        assert 0 <= errors[0].rounding < 1e-3
        assert math.isfinite(errors[0].amplification)
    assert found["net.0"][0].rounding > 0
    assert found["net.0"][0].amplification < 10
    assert found["net.1"][0].amplification > 1


REFERENCE = """
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.Linear(32, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
generator = torch.Generator().manual_seed(1)
for _ in range(12):
    x = torch.randn(32, 8, generator=generator)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize("eps", ["1e-5", "9.6e-6"])
def test_errors_below_the_noise_floor_count_where_the_setting_tells_of_them(tmp_path: Path, eps: str) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE)
    (tmp_path / "mine.py").write_text(REFERENCE.replace("nn.LayerNorm(32)", f"nn.LayerNorm(32, eps={eps})"))
    found = compared(tmp_path, "mine.py", "ref.py")
    parted = found["first_divergence"]
    if eps == "1e-5":
        assert parted is None, parted
        return
    assert (parted["step"], parted["phase"], parted["module"]) == (0, "forward", "1")
    assert "eps" in parted["cause"]
    assert not found["first_step_loss_differs"]
