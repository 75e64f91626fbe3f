"""With Trueline, a script computes what it computes without: losses, weights, optimizer state, random streams."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from integration.commands import SCRIPTS, only_run, plain, recorded

NAMES = ["mlp", "cnn", "lstm", "gpt", "dropout", "amp", "workers"]


@pytest.mark.parametrize("name", NAMES)
def test_same_output_and_every_step_recorded(name: str, tmp_path: Path) -> None:
    script = str(SCRIPTS / f"{name}.py")
    without = plain(script, cwd=tmp_path / "plain")
    assert without.returncode == 0, without.stderr
    assert re.search(r"^weights [0-9a-f]{64}$", without.stdout, re.MULTILINE)

    runs = tmp_path / "runs"
    with_trueline = recorded(script, cwd=tmp_path / "recorded", runs=runs)
    assert with_trueline.returncode == 0, with_trueline.stderr
    assert with_trueline.stdout == without.stdout

    run = only_run(runs)
    printed = [float(value) for value in re.findall(r"\bloss (\S+)", without.stdout)]
    assert [step.id for step in run.steps] == list(range(len(printed)))
    assert [step.loss for step in run.steps] == pytest.approx(printed, rel=1e-5)
    assert run.info.recorder_error is None


def test_plain_python_repeats_itself(tmp_path: Path) -> None:
    """The comparison above means something only if two plain runs agree."""
    script = str(SCRIPTS / "dropout.py")
    assert plain(script, cwd=tmp_path).stdout == plain(script, cwd=tmp_path).stdout
