"""Scripts give the same numbers, output and exit code with and without Trueline.

Without dropout: on the CPU MindSpore draws other masks in every process, whatever the seed.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.integration.commands import MODULE, run

SCRIPT = """
import sys
import numpy as np
import mindspore as ms
from mindspore import nn, ops
import mindspore.dataset as ds

if "graph" in sys.argv:
    ms.set_context(mode=ms.GRAPH_MODE)
ms.set_seed(3)
random = np.random.RandomState(0)
data = ds.NumpySlicesDataset((random.rand(96, 1, 8, 8).astype(np.float32), random.randint(0, 3, 96).astype(np.int32)))
data = data.batch(16)


class Net(nn.Cell):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.norm = nn.BatchNorm2d(4)
        self.fc = nn.Dense(256, 3)

    def construct(self, x):
        x = ops.relu(self.norm(self.conv(x)))
        return self.fc(x.reshape(x.shape[0], -1))


net = Net()
net.set_train()
loss_fn = nn.CrossEntropyLoss()
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)


def forward(x, y):
    return loss_fn(net(x), y)


grad_fn = ms.value_and_grad(forward, None, optimizer.parameters)
iterator = data.create_tuple_iterator(num_epochs=2)
for epoch in range(2):
    for x, y in iterator:
        loss, grads = grad_fn(x, y)
        optimizer(grads)
        print(float(loss).hex())
print([float(p.sum()).hex() for p in net.get_parameters()])
"""


@pytest.mark.parametrize(("mode", "options"), [("pynative", []), ("graph", []), ("graph", ["--graph-tensors"])])
def test_the_same_bits(tmp_path: Path, mode: str, options: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    alone = run([sys.executable, str(script), mode], tmp_path)
    watched = run([*MODULE, "run", *options, str(script), mode], tmp_path, tmp_path / "runs")
    assert (alone.returncode, watched.returncode) == (0, 0), watched.stderr
    assert watched.stdout == alone.stdout
    own = [line for line in watched.stderr.splitlines() if line.startswith("trueline:")]
    assert len(own) == 1
    assert "Exception ignored" not in watched.stderr
