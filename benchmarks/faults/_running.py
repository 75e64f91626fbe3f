"""Diagnose one script as a user would: alone in an empty folder, with `trueline diagnose train.py`."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from benchmarks.faults._case import Case
from benchmarks.faults._score import Outcome, outcome_of

FOUND = "found.json"
TRUELINE = [sys.executable, "-m", "trueline"]
CHECK = [*TRUELINE, "check", "latest", "--json", FOUND]


def _environment(runs: Path) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRUELINE", "PYTEST", "COV"))}
    # One thread each: as many scripts run at a time as there are cores.
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return kept | threads | {"PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1", "TRUELINE_RUNS": str(runs)}


def commands(case: Case) -> list[list[str]]:
    """What a user types. A script of several processes is recorded under its launcher, then the run is checked."""
    if not case.launch:
        return [[*TRUELINE, "diagnose", *case.words, "--json", FOUND]]
    # Each on a port of its own, so that several such scripts can run at the same time.
    launcher, *options = case.launch
    alone = ["--standalone"] if launcher == "torchrun" else [f"--master_port={free_port()}", "--join=True"]
    return [[*TRUELINE, "run", launcher, *alone, *options, *case.words], CHECK]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _finish(command: list[str], folder: Path, environment: dict[str, str], seconds: float) -> tuple[int | None, str]:
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


def diagnose(case: Case, longest: float, keep: Path | None = None) -> Outcome:
    """What is said of one case. The folder with script, run and printed text is left below `keep` when that is given."""
    folder = Path(tempfile.mkdtemp(prefix="work-"))
    try:
        for name, text in case.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return _outcome(case, commands(case), folder, longest)
    finally:
        if keep is not None:
            shutil.copytree(folder, kept_folder(case, keep), dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def check_again(case: Case, longest: float, keep: Path) -> Outcome:
    """What is said now of the run that was kept below `keep`: recording is left out, and what `diagnose` reruns too."""
    folder = kept_folder(case, keep)
    (folder / FOUND).unlink(missing_ok=True)
    return _outcome(case, [CHECK], folder, longest)


def is_kept(case: Case, keep: Path) -> bool:
    """Whether a run of this very script lies below `keep`: a script that was changed since has to be recorded again."""
    folder = kept_folder(case, keep)
    return all(
        (folder / name).is_file() and (folder / name).read_text(encoding="utf-8") == text for name, text in case.files.items()
    )


def kept_folder(case: Case, keep: Path) -> Path:
    return keep / case.name.replace("/", "-")


def _outcome(case: Case, steps: list[list[str]], folder: Path, longest: float) -> Outcome:
    environment = _environment(folder / ".trueline" / "runs")
    started = time.monotonic()
    problem, printed = None, ""
    for command in steps:
        code, text = _finish(command, folder, environment, longest)
        printed += text
        if code is None:
            problem = f"not finished within {longest:.0f} s"
            break
    seconds = time.monotonic() - started
    (folder / "printed.txt").write_text(printed, encoding="utf-8")
    found = folder / FOUND
    if problem is None and not found.exists():
        problem = f"no diagnosis (exit code {code}): {_last_line(printed)}"
    diagnosis: dict[str, Any] | None = json.loads(found.read_text(encoding="utf-8")) if found.exists() else None
    return outcome_of(case, diagnosis, seconds, problem)


def _last_line(printed: str) -> str:
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
