"""Does every record open to the last complete step, however the training ends?

    python benchmarks/kills/run.py [--kills 300] [--framework pytorch] [--seed 0]

Short trainings are killed at random moments while they start, train and end, by four signals. The record must hold all
steps that the script itself wrote down as complete, the verdict must say that it is incomplete, and the next
command must leave nothing behind. Exit code 1 where anything is not so.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

FRAMEWORKS = ("pytorch", "mindspore")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300, help="of all frameworks together")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="of this one only")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", action="store_true", help="keep what is left of the ones that went wrong")
    options = parser.parse_args()
    frameworks = FRAMEWORKS if options.framework is None else (options.framework,)
    folder = Path(tempfile.mkdtemp(prefix="kills-"))
    begun = time.monotonic()
    try:
        outcomes = [
            outcome
            for framework in frameworks
            for outcome in _killed(framework, options.kills // len(frameworks), options.seed, folder / framework)
        ]
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    _print(outcomes)
    wrong = [outcome for outcome in outcomes if outcome["wrong"]]
    for outcome in wrong:
        print(f"{outcome['framework']} {outcome['signal']} {outcome['phase']}: {'; '.join(outcome['wrong'])}")
    print(f"{len(outcomes)} kills, {len(wrong)} with something wrong, {time.monotonic() - begun:.0f} s")
    return 1 if wrong else 0


def _killed(framework: str, kills: int, seed: int, folder: Path) -> list[dict[str, Any]]:
    folder.mkdir(parents=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TRUELINE", "PYTEST", "COV"))}
    environment = kept | {"OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    words = [sys.executable, str(Path(__file__).with_name("_warm.py")), framework, str(kills), str(seed), str(folder)]
    finished = subprocess.run(words, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return [json.loads(line) for line in finished.stdout.splitlines()]


def _print(outcomes: list[dict[str, Any]]) -> None:
    rows: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    half_made: Counter[tuple[str, str]] = Counter()
    states: dict[tuple[str, str], Counter[str]] = {}
    for outcome in outcomes:
        row = (outcome["framework"], outcome["phase"])
        rows[row] += 1
        right[row] += not outcome["wrong"]
        half_made[row] += outcome["half_made"]
        states.setdefault(row, Counter())[outcome["status"] or "no run"] += 1
    print("| framework | killed while | kills | left half made | opens to the last complete step, nothing left | the run is |")
    print("|---|---|---|---|---|---|")
    for row, count in rows.items():
        told = ", ".join(f"{name} {number}" for name, number in states[row].most_common())
        print(f"| {row[0]} | {row[1]} | {count} | {half_made[row]} | {right[row]} | {told} |")


if __name__ == "__main__":
    sys.exit(main())
