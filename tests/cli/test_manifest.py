"""`--manifest` of check and diagnose: the files that a run opened against the files that the dataset should have."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
import numpy as np
import torch

torch.manual_seed(0)
with open("data/table.csv") as file:
    table = torch.tensor([[float(value) for value in line.split(",")] for line in file])
model = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _ in range(20):
    optimizer.zero_grad()
    torch.nn.functional.mse_loss(model(table[:, :3]), table[:, 3:]).backward()
    optimizer.step()
"""


def trueline(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TRUELINE_RUNS": str(folder / "runs"), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [sys.executable, "-m", "trueline", *arguments],
        cwd=folder, env=environment, capture_output=True, text=True, timeout=180, check=False,
    )  # fmt: skip


def conclusion(folder: Path) -> dict[str, object]:
    (entry,) = [one for one in json.loads((folder / "found.json").read_text())["checklist"] if one["id"] == "ds.04"]
    return dict(entry)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "table.csv").write_text("".join(f"{row},{row % 3},{row % 5},{row * 0.1}\n" for row in range(60)))
    (tmp_path / "train.py").write_text(SCRIPT)
    made = trueline(tmp_path, "data", "data/table.csv", "--manifest", "standard.json")
    assert made.returncode in (0, 1), made.stderr
    return tmp_path


def test_diagnose_says_that_the_files_are_the_standard_ones(folder: Path) -> None:
    done = trueline(folder, "diagnose", "--no-rerun", "train.py", "--manifest", "standard.json", "--json", "found.json")
    assert done.returncode in (0, 1), done.stderr
    assert conclusion(folder)["conclusion"] == "no_problem"


@pytest.mark.parametrize("command", ["check", "diagnose"])
def test_a_file_that_was_cut_off_is_named(folder: Path, command: str) -> None:
    content = (folder / "data" / "table.csv").read_text().splitlines(keepends=True)
    (folder / "data" / "table.csv").write_text("".join(content[:-20]))
    if command == "check":
        assert trueline(folder, "run", "train.py").returncode == 0
        done = trueline(folder, "check", "latest", "--manifest", "standard.json", "--json", "found.json")
    else:
        done = trueline(folder, "diagnose", "--no-rerun", "train.py", "--manifest", "standard.json", "--json", "found.json")
    assert done.returncode == 1, done.stdout + done.stderr
    found = conclusion(folder)
    assert found["conclusion"] == "problem_found"
    assert "table.csv" in str(found["summary"])


def test_a_manifest_that_is_none_is_refused(folder: Path) -> None:
    (folder / "standard.json").write_text("{")
    done = trueline(folder, "diagnose", "--no-rerun", "train.py", "--manifest", "standard.json")
    assert done.returncode == 2
    assert "standard.json" in done.stderr
