"""Items of several parts: what could not be checked is not hidden by what could."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from case_runner import WARM

from trueline.checks import check_of_id
from trueline.checks.parts import Part, worst_of
from trueline.model import Conclusion, Finding
from trueline.store import Run

# A classifier, and then a few steps of another model on a loader whose order nothing tells of.
TWO_STAGES = """\
import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(160, 8)
y = (x[:, 0] > 0).long()
net = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
for epoch in range(4):
    for a, b in loader:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(a), b).backward()
        optimizer.step()
code = torch.nn.Sequential(torch.nn.Linear(8, 2), torch.nn.Linear(2, 8))
second = torch.optim.Adam(code.parameters())
for (a,) in DataLoader(TensorDataset(x), batch_size=32):
    second.zero_grad()
    (code(a) - a).square().mean().backward()
    second.step()
"""


def part(name: str, conclusion: Conclusion, confidence: float = 0.5, why: str = "") -> Part:
    summary = f"Not checked: {why}" if conclusion is Conclusion.NOT_CHECKED else f"{name} said."
    return Part(name, Finding("dp.03", "Title", conclusion, summary, confidence, limits=why))


PROBLEM, FINE = Conclusion.PROBLEM_FOUND, Conclusion.NO_PROBLEM
UNKNOWN, ELSEWHERE = Conclusion.NOT_CHECKED, Conclusion.NOT_APPLICABLE


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ([FINE, UNKNOWN, PROBLEM, ELSEWHERE], PROBLEM),
        ([FINE, UNKNOWN], UNKNOWN),
        ([ELSEWHERE, UNKNOWN], UNKNOWN),
        ([ELSEWHERE, FINE], FINE),
        ([ELSEWHERE, ELSEWHERE], ELSEWHERE),
    ],
)
def test_the_worst_part_concludes(given: list[Conclusion], expected: Conclusion) -> None:
    parts = [part(str(number), conclusion, why="why") for number, conclusion in enumerate(given)]
    assert worst_of(parts).conclusion is worst_of(reversed(parts)).conclusion is expected


def test_the_surest_problem_is_told_and_the_least_sure_pass() -> None:
    told = worst_of([part("a", PROBLEM, 0.6), part("b", PROBLEM, 0.9), part("c", PROBLEM, 0.9)])
    assert told.summary == "b said."
    assert worst_of([part("a", FINE, 0.9), part("b", FINE, 0.6)]).summary == "b said."


def test_parts_that_could_not_be_checked_are_named() -> None:
    alone = part("a", UNKNOWN, why="too short.")
    assert worst_of([alone]) is alone.finding
    assert worst_of([alone, part("b", UNKNOWN, why="too short.")]) is alone.finding
    told = worst_of(
        [
            part("c", FINE),
            alone,
            part("b", UNKNOWN, why="no labels"),
            part("d", UNKNOWN, why="too short."),
        ]
    )
    assert told.summary == "Not checked: a, d: too short; b: no labels."
    assert told.limits == "a, d: too short; b: no labels."
    assert [each.text for each in told.evidence] == ["c: c said."]


def line_of(words: str) -> int:
    return TWO_STAGES[: TWO_STAGES.index(words)].count("\n") + 1


def recording(folder: Path, script: str) -> Run:
    (folder / "stages.py").write_text(script)
    environment = os.environ | {"TRUELINE_RUNS": str(folder / "runs"), "OMP_NUM_THREADS": "1"}
    words = ("run", "--name", "one", "stages.py")
    done = WARM.trueline(*words, cwd=folder, environment=environment, longest=60)
    assert done.returncode == 0, done.stderr
    return Run(folder / "runs" / "one")


def test_a_good_loader_or_curve_does_not_hide_another(tmp_path: Path) -> None:
    loader, other_loader = (line_of(words) for words in ("loader =", "for (a,)"))
    sgd, adam = (line_of(words) for words in ("optimizer =", "second ="))
    run = recording(tmp_path, TWO_STAGES)
    try:
        for check, kind, good, unknown in (
            ("dp.03", "the loader", loader, other_loader),
            ("hp.01", "the SGD", sgd, adam),
            ("tr.05", "the SGD", sgd, adam),
        ):
            found = check_of_id(check).conclude(run)
            assert found.conclusion is Conclusion.NOT_CHECKED, found
            named = f"{kind.replace('SGD', 'Adam')} of stages.py:{unknown}: "
            assert found.summary.startswith(f"Not checked: {named}")
            assert found.evidence[-1].text.startswith(f"{kind} of stages.py:{good}: The ")
    finally:
        run.close()


# Another model gives what the head takes; a mask and a number per sample have no scale; `extra` has.
CHAINED = """\
import torch

torch.manual_seed(0)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.out = torch.nn.Linear(6, 2)

    def forward(self, x, mask, extra=None):
        x = self.out(x * mask)
        return x if extra is None else x * torch.sigmoid(extra)


x, mask, y = torch.randn(64, 4), torch.ones(64, 6, dtype=torch.long), torch.arange(64) % 2
body, head = torch.nn.Linear(4, 6), Head()
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
for step in range(12):
    rows = torch.randperm(64)[:16]
    optimizer.zero_grad()
    scores = head(torch.relu(body(x[rows])), mask[rows]EXTRA)
    torch.nn.functional.cross_entropy(scores, y[rows]).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("extra", "conclusion", "said"),
    [
        ("", FINE, "The inputs are of a size that layers can learn from."),
        (", x[rows, :2]", UNKNOWN, "Not checked: input '2' of head: no layer with weights"),
    ],
)
def test_inputs_of_several_models(tmp_path: Path, extra: str, conclusion: Conclusion, said: str) -> None:
    run = recording(tmp_path, CHAINED.replace("EXTRA", extra))
    found = check_of_id("dp.01").conclude(run)
    run.close()
    assert found.conclusion is conclusion, found
    assert found.summary.startswith(said)
