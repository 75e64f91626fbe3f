"""Diagnoses every script of the fault benchmark and says how often the cause that is named is the right one.

What is in it, and how to read the figures: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import os
import platform
import random
import sys
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Started as a file, Python knows this folder only.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.faults import _tables as tables
from benchmarks.faults._case import FRAMEWORKS, Case, as_it_is, bases, cases, only, strangers
from benchmarks.faults._running import check_again, diagnose, is_kept
from benchmarks.faults._score import Outcome, reaches_goals, what_is_wrong
from benchmarks.faults.mutate import mutants
from benchmarks.starting import judge_all, so_far

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "fault-benchmark.md"
QUICK_PER_ITEM = {"faulty": 1, "healthy": 1, "reported": 0}
QUICK_MUTANTS = 8
QUICK_HEALTHY = 3
NO_LIMIT = -1


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only", nargs="+", default=[], metavar="ID", help="these items, or scripts whose name contains this word"
    )
    parser.add_argument("--framework", choices=FRAMEWORKS, help="the scripts of one framework only")
    parser.add_argument(
        "--jobs", type=int, default=os.cpu_count() or 1, help="scripts at a time; the number of cores if not given"
    )
    parser.add_argument(
        "--mutants", type=int, default=NO_LIMIT, metavar="N", help="plant so many faults, picked at random; 0: none"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the choice of planted faults")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep scripts, runs and printed text there")
    parser.add_argument("--recheck", type=Path, metavar="FOLDER", help="check the runs kept there again instead of recording")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="run only what has no diagnosis in that --json FILE of the same state"
    )
    parser.add_argument("--quick", action="store_true", help="one faulty and one healthy script per item, few planted faults")
    parser.add_argument("--longest", type=float, default=240.0, metavar="SECONDS", help="stop a script after this time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    parser.add_argument("--misses", type=Path, metavar="FILE", help="write the list of misses there too")
    parser.add_argument("--write-docs", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    return parser.parse_args(arguments)


def selection(options: argparse.Namespace) -> list[Case]:
    """The scripts to run, in the order of their items."""
    written, healthy = cases(), [*bases(), *strangers()]
    limit = None if options.mutants == NO_LIMIT else options.mutants
    if options.quick:
        written, healthy = _few(written), healthy[:QUICK_HEALTHY]
        limit = QUICK_MUTANTS if limit is None else limit
    planted = only(mutants(bases(), options.seed), options.only)
    chosen = only([*written, *as_it_is(written), *healthy], options.only) + (
        planted if limit is None else _picked(planted, limit, options.seed)
    )
    if options.framework:
        chosen = [case for case in chosen if case.framework == options.framework]
    if options.recheck:
        chosen = [case for case in chosen if is_kept(case, options.recheck)]
    if not chosen:
        raise SystemExit(f"No script matches --only {' '.join(options.only)}. Give items such as tr.01, or parts of names.")
    return chosen


def _few(written: list[Case]) -> list[Case]:
    taken: dict[tuple[str | None, str], int] = {}
    few = []
    for case in written:
        count = taken[case.item, case.kind] = taken.get((case.item, case.kind), 0) + 1
        if count <= QUICK_PER_ITEM[case.kind]:
            few.append(case)
    return few


def _picked(planted: list[Case], limit: int, seed: int) -> list[Case]:
    chosen = random.Random(seed).sample(range(len(planted)), min(limit, len(planted)))  # noqa: S311 - no secret
    return [planted[number] for number in sorted(chosen)]


def conditions(options: argparse.Namespace, outcomes: list[Outcome], seconds: float) -> dict[str, Any]:
    return {
        "trueline": version("trueline"),
        "torch": version("torch"),
        "mindspore": version("mindspore"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "jobs": options.jobs,
        "seed": options.seed,
        "scripts": len(outcomes),
        "minutes": round(seconds / 60, 1),
        "complete": not options.only and not options.quick and options.mutants == NO_LIMIT,
    }


def in_words(held: dict[str, Any]) -> str:
    return (
        f"{held['scripts']} scripts in {held['minutes']} minutes, {held['jobs']} at a time on {held['cores']} cores, "
        f"one thread each; trueline {held['trueline']}, torch {held['torch']}, mindspore {held['mindspore']}, "
        f"Python {held['python']}, seed {held['seed']}."
    )


def judge(options: argparse.Namespace, case: Case) -> Outcome:
    if options.recheck:
        return check_again(case, options.longest, options.recheck)
    return diagnose(case, options.longest, options.keep)


def resumed(path: Path | None) -> tuple[dict[str, Outcome], float]:
    """What an earlier run has diagnosed, by the name of the script, and the seconds that it took."""
    if path is None:
        return {}, 0.0
    earlier = json.loads(path.read_text(encoding="utf-8"))
    names = {field.name for field in dataclasses.fields(Outcome)}
    told = [Outcome(**{key: value for key, value in each.items() if key in names}) for each in earlier["outcomes"]]
    return {outcome.name: outcome for outcome in told if not outcome.problem}, 60 * earlier["conditions"]["minutes"]


def show_progress(total: int) -> Any:
    def told(done: int, outcome: Outcome) -> None:
        wrong = what_is_wrong(outcome)
        said = f"\n    {outcome.said}" if wrong else ""
        print(
            f"[{done}/{total}] {outcome.name}: {wrong or 'as expected'} ({outcome.seconds:.1f} s){said}",
            file=sys.stderr,
            flush=True,
        )

    return told


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    if options.write_docs and (options.only or options.quick or options.recheck):
        raise SystemExit("The documentation is written from the whole benchmark: leave out --only, --quick and --recheck.")
    known, seconds = resumed(options.resume)
    chosen = selection(options)
    left = [case for case in chosen if case.name not in known]
    started = time.monotonic()

    def kept() -> tuple[list[Outcome], dict[str, Any]]:
        took = seconds + time.monotonic() - started
        return so_far(chosen, known, lambda each: conditions(options, each, took), tables.machine_readable, options.json)

    judge_all(left, options.jobs, functools.partial(judge, options), show_progress(len(left)), known, kept)
    outcomes, held = kept()

    print(in_words(held), tables.terminal_table(outcomes), sep="\n\n", end="\n\n")
    for name, goal, measured, reached in tables.totals(outcomes):
        print(f"{name}: {measured}, goal {goal}: {'reached' if reached else 'NOT REACHED'}")
    wrong = tables.miss_lines(outcomes)
    print(f"\nNot as expected: {len(wrong)}")
    print("\n".join(wrong))

    if options.misses:
        options.misses.write_text("\n".join(wrong) + "\n", encoding="utf-8")
    if options.write_docs:
        for framework in [options.framework] if options.framework else FRAMEWORKS:
            own = [known[case.name] for case in chosen if case.framework == framework]
            tables.write_documentation(PAGE, framework, own, in_words(held | {"scripts": len(own)}))
    return 0 if reaches_goals(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
