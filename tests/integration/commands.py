"""Start scripts as a user would, with plain python and with `trueline run`, and read what was recorded."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from trueline.store import Run

TESTS = Path(__file__).resolve().parents[1]
SCRIPTS = TESTS / "scripts"
STRANGERS = SCRIPTS / "strangers"
EXAMPLES = TESTS.parent / "examples"

TRUELINE = [str(Path(sys.executable).with_name("trueline"))]
MODULE = [sys.executable, "-m", "trueline"]
LONGEST = 150

Finished = subprocess.CompletedProcess[str]


def environment(runs: Path | None = None) -> dict[str, str]:
    """The environment of a script under test: one thread, no byte code left behind, runs kept in `runs`."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRUELINE", "PYTEST", "COV"))}
    kept |= {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
    return kept if runs is None else kept | {"TRUELINE_RUNS": str(runs)}


def run(command: list[str], cwd: Path, runs: Path | None = None, stdin: str = "", longest: float = LONGEST) -> Finished:
    cwd.mkdir(parents=True, exist_ok=True)
    return subprocess.run(
        command, cwd=cwd, env=environment(runs), input=stdin, capture_output=True, text=True, timeout=longest, check=False
    )


def plain(*arguments: str, cwd: Path, stdin: str = "") -> Finished:
    """`python ARGUMENTS` without Trueline."""
    return run([sys.executable, *arguments], cwd, stdin=stdin)


def recorded(*arguments: str, cwd: Path, runs: Path, stdin: str = "") -> Finished:
    """`trueline run ARGUMENTS`."""
    return run([*TRUELINE, "run", *arguments], cwd, runs, stdin)


def check(runs: Path, cwd: Path, reference: str = "latest") -> tuple[Finished, dict[str, Any]]:
    """`trueline check --json` on a run (the latest unless told otherwise): the process, and the diagnosis it wrote."""
    found = cwd / "found.json"
    finished = run([*TRUELINE, "check", reference, "--json", str(found)], cwd, runs)
    assert found.is_file(), f"check wrote no JSON (exit {finished.returncode}):\n{finished.stdout}\n{finished.stderr}"
    diagnosis: dict[str, Any] = json.loads(found.read_text())
    return finished, diagnosis


def only_run(runs: Path) -> Run:
    """The one run of the folder."""
    directories = sorted(path.parent for path in runs.glob("*/run.json"))
    assert len(directories) == 1, f"Expected one run. Received {directories}."
    return Run(directories[0])


def alarms(diagnosis: dict[str, Any]) -> list[str]:
    """What a healthy script must not have: items with a problem found, or that failed."""
    return [
        f"{entry['id']} {entry['conclusion']}: {entry['summary']} @ {entry['location']}"
        for entry in diagnosis["checklist"]
        if entry["conclusion"] in ("problem_found", "error")
    ]
