"""A record opens to the last complete step, whenever and however its training was killed: a few kills of `make bench-kills`."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import pytest
from integration.commands import TESTS, environment

RUN = TESTS.parent / "benchmarks" / "kills" / "run.py"


@pytest.mark.parametrize(("framework", "kills"), [("pytorch", 8), ("mindspore", 6)])
def test_every_record_opens_to_the_last_complete_step(framework: str, kills: int, tmp_path: Path) -> None:
    seed = str(random.randrange(1000))  # noqa: S311 - any moments will do
    finished = subprocess.run(
        [sys.executable, str(RUN), "--framework", framework, "--kills", str(kills), "--seed", seed],
        cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=280, check=False,
    )  # fmt: skip
    assert finished.returncode == 0, f"seed {seed}\n{finished.stdout}\n{finished.stderr}"
    assert f"{kills} kills, 0 with something wrong" in finished.stdout
