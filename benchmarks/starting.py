"""Starting the command of Trueline for many scripts, as a user would: in folders of their own, several at a time."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Protocol, TypeVar

TRUELINE = [sys.executable, "-m", "trueline"]

Case = TypeVar("Case")


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


class Judged(Protocol):
    """An outcome, or the case that it is one of."""

    @property
    def name(self) -> str: ...


Outcome = TypeVar("Outcome", bound=Judged)


def judge_all(
    cases: list[Case],
    jobs: int,
    judge: Callable[[Case], Outcome],
    told: Callable[[int, Outcome], None],
    known: dict[str, Outcome],
    keep: Callable[[], object],
) -> None:
    """Add all outcomes to those that are known, by their names, and keep them as they come; `told` hears of each, with the
    number of those that are done."""
    with ThreadPoolExecutor(jobs) as pool:
        for done, future in enumerate(as_completed([pool.submit(judge, case) for case in cases]), 1):
            outcome = future.result()
            known[outcome.name] = outcome
            told(done, outcome)
            keep()


def so_far(
    chosen: Sequence[Judged],
    known: dict[str, Outcome],
    conditions: Callable[[list[Outcome]], dict[str, Any]],
    as_json: Callable[[list[Outcome], dict[str, Any]], str],
    path: Path | None,
) -> tuple[list[Outcome], dict[str, Any]]:
    """The outcomes that are known, in the order of what was chosen, and how they came about; written to `path` where there is
    one, for a run may be interrupted."""
    outcomes = [known[case.name] for case in chosen if case.name in known]
    held = conditions(outcomes)
    if path is not None:
        path.write_text(as_json(outcomes, held), encoding="utf-8")
    return outcomes, held
