"""Compare one pair as a user would: both scripts alone in an empty folder, `trueline diagnose mine.py --reference ref.py`."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from pathlib import Path

from benchmarks.differences._case import MINE, REFERENCE, Case
from benchmarks.differences._score import Outcome, outcome_of
from benchmarks.starting import TRUELINE, environment_of, finish, last_line

FOUND = "out.json"


def compare(case: Case, longest: float, keep: Path | None = None) -> Outcome:
    """What is said of one pair. The folder with scripts, runs and printed text is left below `keep` when that is given."""
    folder = Path(tempfile.mkdtemp(prefix="work-"))
    try:
        for name, text in case.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        return _outcome(case, folder, longest)
    finally:
        if keep is not None:
            shutil.copytree(folder, keep / case.name.replace("/", "-"), dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _outcome(case: Case, folder: Path, longest: float) -> Outcome:
    command = [*TRUELINE, "diagnose", MINE, "--reference", REFERENCE, "--json", FOUND]
    started = time.monotonic()
    code, printed = finish(command, folder, environment_of(folder / ".trueline" / "runs"), longest)
    seconds = time.monotonic() - started
    (folder / "printed.txt").write_text(printed, encoding="utf-8")
    found = folder / FOUND
    if code is None:
        return outcome_of(case, None, seconds, f"not finished within {longest:.0f} s")
    if not found.exists():
        return outcome_of(case, None, seconds, f"no diagnosis (exit code {code}): {last_line(printed)}")
    return outcome_of(case, json.loads(found.read_text(encoding="utf-8")), seconds)
