"""What two scripts begin with, as the runs tell of it: the seeds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from builders import build_run, trueline

from trueline.compare.runs.beginnings import size_differences
from trueline.store import Run

Seeds = list[tuple[str, object]]
EACH_EPOCH: Seeds = [("torch", epoch) for epoch in range(9)]
SCRIPT = """\
import torch

torch.manual_seed(SEED)
net = torch.nn.Linear(4, 2)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(3):
    optimizer.zero_grad()
    net(torch.randn(8, 4)).square().mean().backward()
    optimizer.step()
"""


def seeded(directory: Path, seeds: Seeds, framework: str = "torch") -> Run:
    rows = {
        "event": [
            (
                100 + place,
                0,
                "seed",
                None,
                None,
                None,
                json.dumps({"library": library, "seed": seed}),
            )
            for place, (library, seed) in enumerate(seeds)
        ]
    }
    return Run(build_run(directory, [2.3], rows=rows, frameworks={framework: "2.0"}))


@pytest.mark.parametrize(
    ("mine", "reference", "framework", "said"),
    [
        ([("torch", 1)], [("torch", 2)], "torch", "The seeds: 1, in the reference 2."),
        (
            [("torch", 1), ("numpy", 3)],
            [("torch", 1)],
            "torch",
            "The seeds: 1, 3, in the reference 1.",
        ),
        ([], [("torch", 2)], "torch", "The seeds: none, in the reference 2."),
        ([("torch", None)], [("torch", 2)], "torch", "The seeds: none, in the reference 2."),
        ([("random", "a")], [("random", "b")], "torch", "The seeds: a, in the reference b."),
        (
            EACH_EPOCH,
            [("torch", 2)],
            "torch",
            "The seeds: 0, 1, 2, 3 and 5 more, in the reference 2.",
        ),
        ([("torch", 1), ("numpy", 1)], [("torch", 1)], "torch", None),
        ([("torch", 1), ("numpy", 2)], [("numpy", 2), ("torch", 1)], "torch", None),
        # Another framework draws other numbers from the same seed.
        ([("mindspore", 1)], [("torch", 2)], "mindspore", None),
        ([("mindspore", 1)], [], "mindspore", "The seeds: 1, in the reference none."),
    ],
)
def test_seeds(tmp_path: Path, mine: Seeds, reference: Seeds, framework: str, said: str | None) -> None:
    runs = seeded(tmp_path / "mine", mine, framework), seeded(tmp_path / "reference", reference)
    sentences = [each.sentence for each in size_differences(*runs) if each.subject == "seed"]
    assert sentences == ([] if said is None else [said])


def test_another_seed_in_two_scripts_is_reported(tmp_path: Path) -> None:
    for name, seed in (("mine", 7), ("ref", 1)):
        (tmp_path / f"{name}.py").write_text(SCRIPT.replace("SEED", str(seed)))
    words = ("diagnose", "--no-rerun", "--reference", "ref.py", "--json", "found.json", "mine.py")
    done = trueline(*words, cwd=tmp_path)
    comparison = json.loads((tmp_path / "found.json").read_text())["comparison"]
    (seeds,) = [each for each in comparison["differences"] if each["subject"] == "seed"]
    assert (seeds["mine"], seeds["reference"], seeds["item"]) == ("7", "1", "tr.07")
    assert "The seeds: 7, in the reference 1." in done.stdout
