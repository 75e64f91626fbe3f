"""Run a case script as a user would (`trueline run`, then `trueline check --json`), and say what was found.

Cases lie in `benchmarks/faults/cases/<id>/*.py`: plain training scripts. The line that a finding must name ends in `# <-
fault`. A first line `# launch: torchrun --nproc-per-node 2` says how a distributed one is started.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from recorded_cases import recorded
from warm_process import WarmProcess

from trueline.checks import run_checks
from trueline.diagnose import diagnose as conclude
from trueline.report.json import diagnosis_json
from trueline.store import Run

CASES = Path(__file__).parents[2] / "benchmarks" / "faults" / "cases"
MARKER = "# <- fault"
LAUNCH = "# launch: "
# Items that compare a run with a second one need `trueline diagnose`, which makes it.
RERUN = {"tr_07"}
MOST_CASES = {"faulty": 3, "healthy": 2}
WARM = WarmProcess()
atexit.register(WARM.end)
_LONGEST = 180.0

Diagnosis = dict[str, Any]


def case_files(check_id: str, prefix: str) -> list[Path]:
    """PyTorch cases of one item by the start of their names: `faulty` or `healthy`. As many as every item must have, from all
    over the list; `make bench-faults` runs all of them. MindSpore's are in test_mindspore_cases.py."""
    files = sorted(path for path in (CASES / check_id.replace(".", "_")).glob(f"{prefix}*.py") if "_ms_" not in path.name)
    assert files, f"no {prefix} cases for {check_id}"
    most = MOST_CASES.get(prefix, len(files))
    return [files[place * len(files) // most] for place in range(most)] if len(files) > most else files


def case_name(path: Path) -> str:
    return path.stem


def _trueline(*arguments: str, cwd: Path, runs: Path, warm: bool = False) -> subprocess.CompletedProcess[str]:
    """`warm`: in a process that has imported PyTorch already, which a script cannot tell."""
    environment = os.environ | {"TRUELINE_RUNS": str(runs), "OMP_NUM_THREADS": "1"}
    if warm:
        return WARM.trueline(*arguments, cwd=cwd, environment=environment, longest=_LONGEST)
    return subprocess.run(
        [sys.executable, "-m", "trueline", *arguments],
        cwd=cwd, env=environment, capture_output=True, text=True, timeout=_LONGEST, check=False,
    )  # fmt: skip


def launcher(path: Path) -> list[str]:
    """The command that starts the script's processes, as its first line says; nothing for a single process."""
    first = path.read_text(encoding="utf-8").partition("\n")[0]
    return first.removeprefix(LAUNCH).split() if first.startswith(LAUNCH) else []


def diagnose(path: Path, folder: Path) -> Diagnosis:
    """The decoded JSON of `trueline check` on a recording of the script, kept under `folder`; of `trueline diagnose` where the
    item needs a second run."""
    if path.parent.name not in RERUN:
        return _checked(recorded(path, lambda runs: _record(path, runs)))
    found = folder / "found.json"
    checked = _trueline("diagnose", "--json", str(found), path.name, cwd=path.parent, runs=folder / "runs")
    assert checked.returncode in (0, 1), f"diagnose failed on {path.name}:\n{checked.stdout}\n{checked.stderr}"
    diagnosis: Diagnosis = json.loads(found.read_text())
    return diagnosis


def _record(path: Path, runs: Path) -> None:
    words = ("run", *launcher(path), path.name)
    made = _trueline(*words, cwd=path.parent, runs=runs, warm=not launcher(path))
    assert made.returncode == 0, f"{path.name} did not run:\n{made.stderr}"


def _checked(directory: Path) -> Diagnosis:
    """The document that `trueline check --json` writes of a run, made here: a command takes its time to start."""
    run = Run(directory)
    try:
        diagnosis: Diagnosis = json.loads(diagnosis_json(conclude(run, run_checks(run)), run.info))
    finally:
        run.close()
    return diagnosis


def finding(diagnosis: Diagnosis, check_id: str) -> dict[str, Any]:
    """The entry of one item in the checklist."""
    (entry,) = [entry for entry in diagnosis["checklist"] if entry["id"] == check_id]
    return entry


def marked_line(path: Path) -> int:
    """The number of the line that ends in the fault marker."""
    lines = [number for number, line in enumerate(path.read_text().splitlines(), 1) if line.rstrip().endswith(MARKER)]
    assert len(lines) == 1, f"Expected one line marked {MARKER!r} in {path.name}. Received {lines}."
    return lines[0]


def _told(diagnosis: Diagnosis) -> str:
    return "\n".join(
        f"{entry['id']} {entry['conclusion']} {entry['confidence']:.2f} {entry['summary']} @ {entry['location']}"
        for entry in diagnosis["checklist"]
    )


def assert_found(diagnosis: Diagnosis, check_id: str, path: Path | None = None, module: str | None = None) -> dict[str, Any]:
    """The item found the problem, on the marked line of the case when its path is given, in this module when one is."""
    entry = finding(diagnosis, check_id)
    assert entry["conclusion"] == "problem_found", _told(diagnosis)
    for part in ("summary", "evidence", "fix", "limits"):
        assert entry[part], f"{check_id} gives no {part}: {entry}"
    assert entry["confidence"] >= 0.5, entry
    if path is not None:
        assert entry["location"] is not None, entry
        assert (entry["location"]["file"], entry["location"]["line"]) == (path.name, marked_line(path)), entry
    if module is not None:
        assert entry["location"]["module"] == module, entry
    return entry


def assert_cause(diagnosis: Diagnosis, check_id: str) -> None:
    """The verdict names this item as the cause."""
    assert diagnosis["verdict"]["cause"] == check_id, _told(diagnosis)
    assert diagnosis["verdict"]["status"] == "problem_found"


def assert_nothing_found(diagnosis: Diagnosis) -> None:
    """No item is `problem_found`, and none failed."""
    wrong = [entry["id"] for entry in diagnosis["checklist"] if entry["conclusion"] in ("problem_found", "error")]
    assert not wrong, _told(diagnosis)
    assert diagnosis["verdict"]["cause"] is None
