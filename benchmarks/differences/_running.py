"""Compare one pair as a user would: both scripts alone in an empty folder, `trueline diagnose mine.py --reference ref.py`.

A reference is recorded with the first script that is compared with it; the others are given its run. No script is run a second
time to see whether it repeats itself, and none closer: the comparison does not read these.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections import defaultdict
from contextlib import nullcontext
from pathlib import Path
from threading import Lock

from benchmarks.differences._case import MINE, REFERENCE, Case
from benchmarks.differences._score import Outcome, outcome_of
from benchmarks.starting import TRUELINE, environment_of, finish, last_line

FOUND = "out.json"


class References:
    """The runs of references, by their text; pairs of one reference wait for the first of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, Path] = {}
        self._locks: defaultdict[str, Lock] = defaultdict(Lock)

    def lock(self, text: str) -> Lock:
        return self._locks[text]

    def run_of(self, text: str) -> Path | None:
        return self._known.get(text)

    def keep(self, text: str, runs: Path) -> None:
        """Keep the run that a comparison has recorded of the reference."""
        found = next(iter(sorted(runs.glob(f"{Path(REFERENCE).stem}-*"))), None)
        if found is not None:
            kept = self._folder / f"reference{len(self._known)}"
            shutil.copytree(found, kept)
            self._known[text] = kept


def compare(case: Case, longest: float, references: References, keep: Path | None = None) -> Outcome:
    """What is said of one pair. The folder with scripts, runs and printed text is left below `keep` when that is given."""
    folder = Path(tempfile.mkdtemp(prefix="work-"))
    text = case.files[REFERENCE]
    try:
        for name, content in case.files.items():
            (folder / name).write_text(content, encoding="utf-8")
        with references.lock(text) if references.run_of(text) is None else nullcontext():
            known = references.run_of(text)
            if known is None:
                outcome = _outcome(case, folder, longest, REFERENCE)
                references.keep(text, folder / ".trueline" / "runs")
                return outcome
        return _outcome(case, folder, longest, str(known))
    finally:
        if keep is not None:
            shutil.copytree(folder, keep / case.name.replace("/", "-"), dirs_exist_ok=True)
        shutil.rmtree(folder, ignore_errors=True)


def _outcome(case: Case, folder: Path, longest: float, reference: str) -> Outcome:
    command = [*TRUELINE, "diagnose", MINE, "--reference", reference, "--json", FOUND]
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
