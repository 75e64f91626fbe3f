"""Diagnose one script as a user would: alone in an empty folder, with `trueline diagnose train.py`."""

from __future__ import annotations

import json
import shutil
import socket
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.faults._case import Case
from benchmarks.faults._score import Outcome, outcome_of
from benchmarks.starting import TRUELINE, environment_of, finish, last_line

FOUND = "found.json"
CHECK = [*TRUELINE, "check", "latest", "--json", FOUND]


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
    environment = environment_of(folder / ".trueline" / "runs")
    started = time.monotonic()
    problem, printed = None, ""
    for command in steps:
        code, text = finish(command, folder, environment, longest)
        printed += text
        if code is None:
            problem = f"not finished within {longest:.0f} s"
            break
    seconds = time.monotonic() - started
    (folder / "printed.txt").write_text(printed, encoding="utf-8")
    found = folder / FOUND
    if problem is None and not found.exists():
        problem = f"no diagnosis (exit code {code}): {last_line(printed)}"
    diagnosis: dict[str, Any] | None = json.loads(found.read_text(encoding="utf-8")) if found.exists() else None
    return outcome_of(case, diagnosis, seconds, problem)
