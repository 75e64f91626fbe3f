"""Does one watch that fails cost more than itself? Each one fails on purpose, one at a time, in six scripts.

    python benchmarks/containment/run.py [--framework pytorch] [--only WATCH] [--case NAME] [--moment first]

The script must print and learn what it does under plain python, the watch be named once, every item that does not rest on it
be concluded as without the failure, and every item that does say `not_checked` with its name. Exit code 1 where anything is
not so. Scripts that are aligned to others are recorded beside, for the watches that only those have.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.containment._campaign import CASES, Case, plain, recorded, violations, warm  # noqa: E402 - found by the line above
from benchmarks.containment._watches import MOMENTS  # noqa: E402

FRAMEWORKS = ("pytorch", "mindspore")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--framework", choices=FRAMEWORKS, help="the scripts of this one only")
    parser.add_argument("--only", help="watches with one of these in their names only: A,B")
    parser.add_argument("--case", help="cases with this in their name only")
    parser.add_argument("--moment", choices=MOMENTS, help="failures at this call only")
    parser.add_argument("--six", action="store_true", help="without what is recorded beside")
    options = parser.parse_args()
    frameworks = FRAMEWORKS if options.framework is None else (options.framework,)
    wrong = 0
    for framework in frameworks:
        # One process for each: both frameworks in one would share their libraries' threads.
        child = os.fork()
        if child == 0:
            os._exit(_framework(framework, options))
        wrong += os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0
    return 1 if wrong else 0


def _framework(framework: str, options: Any) -> int:
    begun = time.monotonic()
    folder = Path(tempfile.mkdtemp(prefix="containment-"))
    known = warm(framework)
    chosen = {
        name: places
        for name, places in known.items()
        if options.only is None or any(each in name for each in options.only.split(","))
    }
    counts: Counter[str] = Counter()
    reached: set[str] = set()
    try:
        for case in CASES:
            wanted = options.case is None or options.case in case.name
            if case.framework == framework and wanted and not (options.six and case.is_beside):
                _case(case, chosen, folder, counts, reached, options)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        f"\n{framework}: {len(chosen)} watches, {counts['runs']} runs, {counts['failures']} failures of {len(reached)} watches, "
        f"{counts['wrong']} not contained; {counts['items']} items named the watch, {counts['same']} were concluded as without "
        f"it ({time.monotonic() - begun:.0f} s)"
    )
    if missed := sorted(set(chosen) - reached):
        print("Reached by no script:", ", ".join(missed))
    sys.stdout.flush()
    return int(counts["wrong"] > 0)


def _case(case: Case, chosen: dict[str, list[Any]], folder: Path, counts: Counter[str], reached: set[str], options: Any) -> None:
    alone, whole, again = plain(case, folder / "a"), recorded(case, folder / "b"), recorded(case, folder / "c", counted=chosen)
    for outcome in (alone, whole, again):
        if outcome.error is not None:
            print(f"{case.name}: {outcome.error}\n{outcome.errors}")
            counts["wrong"] += 1
            return
    unlike = [part for part in whole.parts if whole.parts[part] != again.parts[part]]
    unlike += [item for item in whole.findings if whole.findings[item] != again.findings[item]]
    if unlike or (not case.aligned and (alone.output, alone.weights) != (whole.output, whole.weights)):
        print(f"{case.name}: two recordings differ without a failure: {unlike or 'the script itself'}")
        counts["wrong"] += 1
    met = 0
    for name, places in chosen.items():
        if case.is_beside and name in reached:
            continue
        for moment in MOMENTS if options.moment is None else (options.moment,):
            if again.calls[name] < (3 if moment == "third" else 1):
                continue
            broken = recorded(case, folder / "d", places, moment)
            counts["runs"] += 1
            met += 1
            reached.add(name)
            counts["failures"] += 1
            found = violations(case, name, alone, whole, broken)
            counts["items"] += sum(name in each["summary"] for each in broken.findings.values())
            counts["same"] += sum(each == whole.findings.get(item) for item, each in broken.findings.items())
            counts["wrong"] += bool(found)
            if found:
                print(f"{case.name}: {name} ({moment})", *found, sep="\n    ", flush=True)
    print(f"{case.name}: {met} failures, {len(whole.findings)} items, {whole.steps} steps", flush=True)


if __name__ == "__main__":
    sys.exit(main())
