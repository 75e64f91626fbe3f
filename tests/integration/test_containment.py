"""A few of the watches that `make bench-containment` lets fail on purpose: nothing but what rests on them is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
# The first ones of what begins a step, looks at it, and ends it; and one that only the end of the script calls.
SAMPLES = {
    "pytorch": (
        "sequences",
        (
            "ModuleWatch._enter_root,ModuleWatch._gradient_arrived,OptimizerWatch._before_step,BackwardWatch._before,"
            "ClipWatch.install,Registry.snapshot,ScalerWatch._happened,ScoreWatch.finish"
        ),
    ),
    "mindspore": ("jit", "ModuleWatch._leave_inner,OptimizerWatch._step_begins,SeedWatch._seeded"),
}


@pytest.mark.parametrize("framework", SAMPLES)
def test_a_failing_watch_costs_nothing_but_itself(framework: str) -> None:
    case, watches = SAMPLES[framework]
    benchmark = ROOT / "benchmarks" / "containment" / "run.py"
    words = ["--framework", framework, "--case", case, "--only", watches, "--moment", "first", "--six"]
    done = subprocess.run(
        [sys.executable, str(benchmark), *words], env={**os.environ, "OMP_NUM_THREADS": "1"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{watches.count(',') + 1} failures" in done.stdout
