"""Scripts that cut their batches out of one long tensor by themselves: all of them are fed with the reference's."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from integration.test_reference import compared

from trueline.compare.fairness import repeats
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
    for run in (mine, perturbed):
        assert msgspec.json.decode(run.meta["alignment"])["fed"] == 15
    assert repeats(reference, perturbed)
    assert not repeats(reference, Run(mine.directory.parent))
    parted = found["first_divergence"]
    if later == "0.01":
        # The order is drawn by the scripts themselves, with another seed.
        assert parted is None or parted["phase"] == "data", parted
        assert found["bifurcation_step"] is None
        return
    assert found["bifurcation_step"] == 10
    assert "step 9" in str([each["sentence"] for each in found["differences"]])
