"""Starting the command of Trueline for many scripts, as a user would: in folders of their own, several at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import TypeVar

TRUELINE = [sys.executable, "-m", "trueline"]

Case = TypeVar("Case")
Outcome = TypeVar("Outcome")


def environment_of(runs: Path) -> dict[str, str]:
    """What is in the environment of a command: its runs lie in this folder, and nothing of who started it leaks in."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRUELINE", "PYTEST", "COV"))}
    # One thread each: as many scripts run at a time as there are cores.
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return kept | threads | {"PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1", "TRUELINE_RUNS": str(runs)}


def finish(command: list[str], folder: Path, environment: dict[str, str], seconds: float) -> tuple[int | None, str]:
    """Exit code and printed text of a command; no exit code when it had to be stopped, with all the processes it started."""
    process = subprocess.Popen(
        command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        printed, _ = process.communicate()
        return None, printed
    return process.returncode, printed


def last_line(printed: str) -> str:
    """The last line that says anything."""
    return next((line.strip() for line in reversed(printed.splitlines()) if line.strip()), "nothing printed")


def outcomes_of(
    cases: list[Case], jobs: int, judge: Callable[[Case], Outcome], told: Callable[[int, Outcome], None]
) -> list[Outcome]:
    """All outcomes in the order of the cases; `told` hears of each as it comes, with the number of those that are done."""
    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(judge, case): number for number, case in enumerate(cases)}
        outcomes: dict[int, Outcome] = {}
        for future in as_completed(waiting):
            outcomes[waiting[future]] = future.result()
            told(len(outcomes), outcomes[waiting[future]])
    return [outcomes[number] for number in range(len(cases))]
