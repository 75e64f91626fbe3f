"""Does a diagnosis harm anything? A training that writes in 41 ways is diagnosed, and killed while it is.

    python benchmarks/harm/run.py [--kills 100] [--framework pytorch] [--seed 0]

Every file must be as plain python leaves it (content, mode, owner, links, time), servers must receive as many requests, no
process may be left, and the next command must leave nothing behind in the folder of runs. Exit code 1 where anything is
not so.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.harm._ways import SIGNALS, WAYS, Outcome, diagnosed, killed  # noqa: E402 - found by the line above

FRAMEWORKS = ("pytorch", "mindspore")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="diagnoses that are killed at a random moment")
    parser.add_argument("--framework", choices=FRAMEWORKS, help="scripts of this one only")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    frameworks = FRAMEWORKS if options.framework is None else (options.framework,)
    folder = Path(tempfile.mkdtemp(prefix="harm-"))
    try:
        return _measured(frameworks, options.kills, random.Random(options.seed), folder)  # noqa: S311 - moments, not secrets
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _measured(frameworks: tuple[str, ...], kills: int, rng: random.Random, folder: Path) -> int:
    outcomes = []
    print("| framework | way | files, requests, leftovers that are wrong | tr.07 | seconds |\n|---|---|---|---|---|")
    for framework in frameworks:
        for way in WAYS:
            outcome = diagnosed(way, framework, folder)
            outcomes.append(outcome)
            print(f"| {framework} | {way} | {len(outcome.wrong)} | {_repeats(outcome)} | {outcome.seconds:.1f} |", flush=True)
    longest = {(each.framework, each.way): each.seconds for each in outcomes}
    moments: Counter[str] = Counter()
    harmed: Counter[str] = Counter()
    for number in range(kills):
        framework, way = frameworks[number % len(frameworks)], ("diagnose", "reference")[number // len(frameworks) % 2]
        seconds = rng.uniform(0.0, longest[framework, way])
        outcome = killed(
            way,
            framework,
            folder,
            SIGNALS[number // (2 * len(frameworks)) % len(SIGNALS)],
            lambda _, wait=seconds: time.sleep(wait),
        )
        outcomes.append(outcome)
        key = f"{framework} | {way} | {outcome.when}"
        moments[key] += 1
        harmed[key] += bool(outcome.wrong)
    if kills:
        print("\n| framework | way | killed with | kills | with harm |\n|---|---|---|---|---|")
        for key in sorted(moments):
            print(f"| {key} | {moments[key]} | {harmed[key]} |")
    wrong = [each for each in outcomes if each.wrong]
    for each in wrong:
        print(f"\n{each.framework}, {each.way} {each.when}:", *each.wrong, sep="\n  ")
    print(f"\n{len(outcomes)} diagnoses, {len(wrong)} with harm")
    return 1 if wrong else 0


def _repeats(outcome: Outcome) -> str:
    """A second run that does not find the files as the first did trains otherwise: tr.07 would see it."""
    items = [] if outcome.diagnosis is None else outcome.diagnosis["checklist"]
    for item in items:
        if item["id"] == "tr.07":
            passed = item["conclusion"] == "no_problem"
            return "no_problem" if passed else f"{item['conclusion']}: {item['summary']}"
    return "no diagnosis"


if __name__ == "__main__":
    sys.exit(main())
