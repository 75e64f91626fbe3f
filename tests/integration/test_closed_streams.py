"""Standard streams that are closed: what Trueline has to say falls into nothing else."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest
from integration.commands import MODULE, Finished, only_run, run

# The recorder gives up in the middle: no file may grow. `log` gets the first free descriptor, as a script's files do.
TRAINING = """
import os, resource, sys, torch
CLOSING
log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.write(log, b"started\\n")
net = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(6):
    if step == 3:
        resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
    optimizer.zero_grad()
    net(torch.ones(8, 4)).pow(2).mean().backward()
    optimizer.step()
    os.write(log, b"%d\\n" % step)
if sys.stdout is not None:
    print("last", flush=True)
"""


def in_shell(words: list[str], closing: str, cwd: Path, runs: Path | None = None) -> Finished:
    return run(["sh", "-c", f"{shlex.join(words)} {closing}"], cwd, runs)


@pytest.mark.parametrize(
    ("closing", "own"),
    [("2>&-", ""), (">&-", ""), ("", "os.close(2)")],
    ids=["error", "output", "by the script"],
)
def test_a_warning_falls_into_no_file_and_no_output(closing: str, own: str, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING.replace("CLOSING", own))
    plain = in_shell([sys.executable, "train.py"], closing, tmp_path)
    expected = (tmp_path / "log.txt").read_bytes()
    assert b"5" in expected
    with_trueline = in_shell([*MODULE, "run", "train.py"], closing, tmp_path, tmp_path / "runs")
    assert (tmp_path / "log.txt").read_bytes() == expected
    assert (with_trueline.stdout, with_trueline.returncode) == (plain.stdout, plain.returncode)
    warned = [line for line in with_trueline.stderr.splitlines() if line.startswith("trueline: ")]
    # Where standard error is open the recorder does say that it gave up: this test sees a warning.
    assert len(warned) == (1 if closing == ">&-" else 0), with_trueline.stderr


HEALTHY = TRAINING.replace("CLOSING", "").replace("if step == 3", "if False")


@pytest.mark.parametrize(("closing", "to_stdout"), [("2>&-", True), ("<&- >&- 2>&-", False)])
def test_a_diagnosis_does_without_streams(closing: str, to_stdout: bool, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(HEALTHY)
    target = "-" if to_stdout else "found.json"
    finished = in_shell([*MODULE, "diagnose", "train.py", "--no-rerun", "--json", target], closing, tmp_path, tmp_path / "runs")
    assert finished.returncode == 0, finished.stderr
    found = json.loads(finished.stdout if to_stdout else (tmp_path / "found.json").read_text())
    assert found["schema"] == "trueline.diagnosis/1"
    made = only_run(tmp_path / "runs")
    assert len(made.steps) == 6
    made.close()
    listed = in_shell([*MODULE, "runs"], closing, tmp_path, tmp_path / "runs")
    assert listed.returncode == 0
    wrong = in_shell([*MODULE, "show", "nothing"], closing, tmp_path, tmp_path / "runs")
    assert wrong.returncode == 2
    assert wrong.stdout == ""
