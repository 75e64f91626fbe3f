"""A compiled script is run once more in PyNative mode, and what only that shows is part of the diagnosis."""

from __future__ import annotations

import json
from pathlib import Path

from integration.commands import TRUELINE, run

from trueline.rerun import Terms, why_no_closer_look
from trueline.store import CLOSER_FOLDER, Run

# The gradients are clipped before they are unscaled: their order inside of the compiled step is not seen.
SCRIPT = """
import mindspore as ms, numpy as np
from mindspore import amp, nn, ops

ms.set_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(320, 6)).astype(np.float32)
y = (x[:, 0] + x[:, 1] > 0).astype(np.int32)
data = ms.dataset.NumpySlicesDataset((x, y), ["x", "y"], shuffle=True).batch(32)
net = nn.SequentialCell(nn.Dense(6, 16), nn.ReLU(), nn.Dense(16, 2))
optimizer = nn.Momentum(net.trainable_params(), 0.05, 0.9)
scaler = amp.StaticLossScaler(1024.0)

def forward(x, y):
    return scaler.scale(ops.cross_entropy(net(x), y))

gradients_of = ms.value_and_grad(forward, None, optimizer.parameters)

@ms.jit
def step(x, y):
    loss, gradients = gradients_of(x, y)
    gradients = ops.clip_by_global_norm(gradients, 1.0)
    optimizer(scaler.unscale(gradients))
    return scaler.unscale(loss)

with open("log.txt", "a") as file:
    file.write("started\\n")
for epoch in range(3):
    for batch in data.create_tuple_iterator():
        loss = step(*batch)
print("last", float(loss))
"""


def test_what_a_compiled_step_hides_is_found(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    finished = run([*TRUELINE, "diagnose", "train.py", "--json", "found.json"], tmp_path, tmp_path / "runs")
    assert finished.stdout.count("last") == 1
    assert (tmp_path / "log.txt").read_text() == "started\n"
    diagnosis = json.loads((tmp_path / "found.json").read_text())
    assert diagnosis["verdict"]["cause"] == "mp.03", diagnosis["verdict"]
    (finding,) = [entry for entry in diagnosis["checklist"] if entry["id"] == "mp.03"]
    assert "in PyNative mode" in finding["limits"]
    assert finding["location"]["source"].startswith("gradients = ops.clip_by_global_norm")

    (directory,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    again = run([*TRUELINE, "check", directory.name, "--json", "again.json"], tmp_path, tmp_path / "runs")
    assert again.returncode == 1
    assert json.loads((tmp_path / "again.json").read_text())["verdict"] == diagnosis["verdict"]

    whole, closer = Run(directory), Run(directory / CLOSER_FOLDER)
    assert len(whole.steps) == len(closer.steps) == 30
    assert "order" in whole.unseen
    assert not closer.unseen
    assert why_no_closer_look(closer, Terms()) == "nothing is hidden inside of compiled graphs"


def test_it_is_left_out_on_demand(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [*TRUELINE, "diagnose", "--no-rerun", "train.py", "--json", "found.json"]
    run(command, tmp_path, tmp_path / "runs")
    (directory,) = [path for path in (tmp_path / "runs").iterdir() if path.is_dir()]
    assert not (directory / CLOSER_FOLDER).exists()
    conclusions = {entry["id"]: entry["conclusion"] for entry in json.loads((tmp_path / "found.json").read_text())["checklist"]}
    assert conclusions["mp.03"] == "not_checked"
