"""Aligned runs are what they are taken for: batches made by hand are fed to the end, and gradients that are cut off are told."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from integration.commands import TRUELINE, run
from integration.test_reference import compared

from trueline.compare.runs.fairness import repeats, why_not_fair
from trueline.store import Run

REFERENCE = """
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(3)
text = torch.from_numpy(np.random.default_rng(0).integers(0, 13, 900))
rng = np.random.default_rng({seed})


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(13, 8)
        self.mix = nn.Linear(8, 8)

    def forward(self, x):
        return F.linear(torch.tanh(self.mix(self.table(x))), self.table.weight)


def get_batch(size=6, length=10):
    places = rng.integers(0, len(text) - length - 1, size=size)
    x = torch.stack([text[place : place + length] for place in places])
    y = torch.stack([text[place + 1 : place + 1 + length] for place in places])
    return x, y


model = Model()
optimizer = torch.optim.Adam(model.parameters(), lr={rate})
for step in range(15):
    if step == 9:
        for group in optimizer.param_groups:
            group["lr"] = {later}
    x, y = get_batch()
    loss = F.cross_entropy(model(x).view(-1, 13), y.view(-1))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def runs(folder: Path) -> tuple[Run, Run, Run]:
    mine, reference = (next((folder / "runs").glob(f"{name}-*")) for name in ("mine", "ref"))
    return Run(mine / "aligned"), Run(reference / "aligned"), Run(reference / "perturbed")


@pytest.mark.parametrize("later", ["0.01", "0.001"])
def test_every_batch_is_the_references(tmp_path: Path, later: str) -> None:
    (tmp_path / "ref.py").write_text(REFERENCE.format(seed=1, rate=0.01, later=0.01))
    (tmp_path / "mine.py").write_text(REFERENCE.format(seed=2, rate=0.01, later=later))
    found = compared(tmp_path, "mine.py", "ref.py")
    mine, reference, perturbed = runs(tmp_path)
    for fed in (mine, perturbed):
        assert msgspec.json.decode(fed.meta["alignment"])["fed"] == 15
    assert repeats(reference, perturbed)
    parted = found["first_divergence"]
    if later == "0.01":
        # The order is drawn by the scripts themselves, with another seed.
        assert parted is None or parted["phase"] == "data", parted
        assert found["bifurcation_step"] is None
        return
    assert found["bifurcation_step"] == 10
    assert "step 9" in str([each["sentence"] for each in found["differences"]])


def test_other_batches_are_no_repetition(tmp_path: Path) -> None:
    # Which samples are drawn is the same in all aligned runs, what they hold is not.
    for name, seed in (("first", 0), ("second", 1)):
        script = REFERENCE.replace("default_rng(0)", f"default_rng({seed})")
        (tmp_path / f"{name}.py").write_text(script.format(seed=1, rate=0.01, later=0.01))
        command = [*TRUELINE, "run", "--name", name, "--as-reference", f"{name}.py"]
        assert run(command, tmp_path, tmp_path / "runs", longest=300).returncode == 0
    first, second = (Run(tmp_path / "runs" / name) for name in ("first", "second"))
    assert repeats(first, first)
    assert not repeats(first, second)
    assert "the models are given other samples" in str(why_not_fair(second, first))


GRADIENTS = """
import torch
from torch import nn

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enter, self.gate, self.leave = nn.Linear(6, 8), nn.Linear(6, 8), nn.Linear(8, 2)

    def forward(self, x):
        return self.leave(torch.tanh(self.enter(x)) * torch.sigmoid(self.gate(x)){cut})


net = Net()
{freeze}
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
generator = torch.Generator().manual_seed(0)
for step in range(8):
    x = torch.randn(16, 6, generator=generator)
    loss = nn.functional.cross_entropy(net(x), (x[:, 0] > 0).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("changed", "module", "words"),
    [
        ({"cut": ".detach()"}, "net", "`detach` cuts the gradient off at mine.py:14"),
        ({"freeze": "net.gate.weight.requires_grad = False"}, "gate", "gate.weight is frozen (requires_grad False)"),
    ],
    ids=["cut", "frozen"],
)
def test_gradients_that_do_not_come_through(tmp_path: Path, changed: dict[str, str], module: str, words: str) -> None:
    plain = {"cut": "", "freeze": ""}
    (tmp_path / "ref.py").write_text(GRADIENTS.format(**plain))
    (tmp_path / "mine.py").write_text(GRADIENTS.format(**plain | changed))
    parted = compared(tmp_path, "mine.py", "ref.py")["first_divergence"]
    assert (parted["step"], parted["phase"], parted["item"]) == (0, "backward", "cg.02"), parted
    assert parted["module"] in {module, None}
    assert words in parted["cause"]


ACCUMULATED = """
import numpy as np
import torch
from torch import nn

torch.manual_seed(0)
data = np.random.default_rng(0).normal(size=(300, 6)).astype(np.float32)
rng = np.random.default_rng({seed})
net = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(8):
    optimizer.zero_grad()
    for _ in range(2):
        rows = rng.choice(300, 20)
        scores = net(torch.from_numpy(data[rows]))
        loss = nn.functional.cross_entropy(scores, torch.from_numpy((data[rows, 0] > 0).astype(np.int64)))
        {backward}
    {after}
    optimizer.step()
"""
DIVIDED_BEFORE = {"backward": "(loss / 2).backward()", "after": "pass"}
DIVIDED_AFTER = {"backward": "loss.backward()", "after": "[parameter.grad.div_(2) for parameter in net.parameters()]"}


def test_accumulated_batches_divided_before_and_after(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(ACCUMULATED.format(seed=1, **DIVIDED_BEFORE))
    (tmp_path / "mine.py").write_text(ACCUMULATED.format(seed=1, **DIVIDED_AFTER))
    found = compared(tmp_path, "mine.py", "ref.py")
    assert found["first_divergence"] is None, found["first_divergence"]
    assert found["first_step_loss_differs"] is False
    mine, _, perturbed = runs(tmp_path)
    for fed in (mine, perturbed):
        assert msgspec.json.decode(fed.meta["alignment"])["fed"] == 16


# Clipping makes gradients the same that are larger than its limit on both sides, which not all of them are.
@pytest.mark.parametrize("clip", ["pass", "nn.utils.clip_grad_norm_(net.parameters(), 0.4)"], ids=["not clipped", "clipped"])
def test_accumulated_batches_that_are_not_divided(tmp_path: Path, clip: str) -> None:
    (tmp_path / "ref.py").write_text(ACCUMULATED.format(seed=1, **DIVIDED_BEFORE | {"after": clip}))
    (tmp_path / "mine.py").write_text(ACCUMULATED.format(seed=1, **DIVIDED_AFTER | {"after": clip}))
    parted = compared(tmp_path, "mine.py", "ref.py")["first_divergence"]
    assert (parted["step"], parted["phase"], parted["item"]) == (0, "backward", "tr.08"), parted
    assert "2 batches are added up: together they are 2 times the reference's" in parted["cause"]
    assert parted["location"]["source"].strip() == "loss.backward()"


CARRIED = """
import torch
from torch import nn

torch.manual_seed(0)
text = torch.randint(0, 9, (400,), generator=torch.Generator().manual_seed(0))


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.table, self.rnn, self.out = nn.Embedding(9, 8), nn.GRU(8, 12), nn.Linear(12, 9)
        self.state = None

    def forward(self, x):
        given, state = self.rnn(self.table(x), self.state)
        self.state = state.detach()
        return self.out(given)


net = Reader()
optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
for step in range(6):
    {reset}
    part = text.view(10, 40).t()[step * 5 : step * 5 + 6]
    scores = net(part[:-1])
    loss = nn.functional.cross_entropy(scores.flatten(0, 1), part[1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


def test_a_state_that_is_not_carried_over(tmp_path: Path) -> None:
    (tmp_path / "ref.py").write_text(CARRIED.format(reset="pass"))
    (tmp_path / "mine.py").write_text(CARRIED.format(reset="net.state = None"))
    found = compared(tmp_path, "mine.py", "ref.py")
    parted = found["first_divergence"]
    assert (found["first_step_loss_differs"], found["second_step_loss_differs"]) == (False, True)
    assert (parted["step"], parted["phase"]) == (1, "forward"), parted
    assert "carried over" in parted["cause"]
