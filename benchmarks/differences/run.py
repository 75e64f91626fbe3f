"""Compares every script of the difference benchmark with its reference and says how often the difference is found.

What is in it, and how to read the figures: benchmarks/README.md.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

# Started as a file, Python knows this folder only.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.differences import _tables as tables
from benchmarks.differences._case import WAYS, Case, different, faithful, only
from benchmarks.differences._running import References, compare
from benchmarks.differences._score import Outcome, score, what_is_wrong
from benchmarks.starting import judge_all, so_far

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "difference-benchmark.md"


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="WORD",
        help="pairs whose name contains this word: cnn/port, faithful, eps",
    )
    parser.add_argument("--framework", choices=sorted(WAYS.values()), help="the scripts of one framework only")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="pairs at a time; the number of cores if not given")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="keep scripts, runs and printed text there")
    parser.add_argument(
        "--resume", type=Path, metavar="FILE", help="run only what has no comparison in that --json FILE of the same state"
    )
    parser.add_argument("--longest", type=float, default=600.0, metavar="SECONDS", help="stop a comparison after this time")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results as JSON")
    parser.add_argument("--misses", type=Path, metavar="FILE", help="write the list of misses there too")
    parser.add_argument("--list", action="store_true", help="list the pairs with what is expected, and run nothing")
    parser.add_argument("--write-docs", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    return parser.parse_args(arguments)


def selection(options: argparse.Namespace) -> list[Case]:
    """The pairs to compare: faithful ones first."""
    chosen = only([*faithful(), *different()], options.only)
    if options.framework:
        chosen = [case for case in chosen if case.framework == options.framework]
    if not chosen:
        raise SystemExit(f"No pair matches --only {' '.join(options.only)}. Give parts of names; --list shows them all.")
    return chosen


def conditions(options: argparse.Namespace, outcomes: list[Outcome], seconds: float) -> dict[str, Any]:
    return {
        "trueline": version("trueline"),
        "torch": version("torch"),
        "mindspore": version("mindspore"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "jobs": options.jobs,
        "pairs": len(outcomes),
        "minutes": round(seconds / 60, 1),
        "complete": not options.only and not options.framework,
    }


def in_words(held: dict[str, Any]) -> str:
    return (
        f"{held['pairs']} pairs in {held['minutes']} minutes, {held['jobs']} at a time on {held['cores']} cores, one thread "
        f"each; trueline {held['trueline']}, torch {held['torch']}, mindspore {held['mindspore']}, Python {held['python']}."
    )


def resumed(path: Path | None) -> tuple[dict[str, Outcome], float]:
    """What an earlier run has compared, by the name of the pair, and the seconds that it took."""
    if path is None:
        return {}, 0.0
    earlier = json.loads(path.read_text(encoding="utf-8"))
    names = {field.name for field in dataclasses.fields(Outcome)}
    told = [Outcome(**{key: value for key, value in each.items() if key in names}) for each in earlier["outcomes"]]
    return {outcome.name: outcome for outcome in told if not outcome.problem}, 60 * earlier["conditions"]["minutes"]


def show_progress(total: int) -> Callable[[int, Outcome], None]:
    def told(done: int, outcome: Outcome) -> None:
        wrong = what_is_wrong(outcome)
        said = f"\n    {outcome.said}" if wrong else ""
        line = f"[{done}/{total}] {outcome.name}: {wrong or 'as expected'} ({outcome.seconds:.1f} s){said}"
        print(line, file=sys.stderr, flush=True)

    return told


def list_pairs(chosen: list[Case]) -> None:
    for case in chosen:
        made = case.difference
        print(case.name)
        print(f"    {made.kind.title}: {made.effect}; first to differ: {made.kind.shows}" if made else "    faithful")


def main(arguments: list[str] | None = None) -> int:
    options = parse_arguments(arguments)
    if options.write_docs and (options.only or options.framework):
        raise SystemExit("The documentation is written from the whole benchmark: leave out --only and --framework.")
    known, seconds = resumed(options.resume)
    chosen = selection(options)
    if options.list:
        list_pairs(chosen)
        return 0
    left = [case for case in chosen if case.name not in known]
    started = time.monotonic()

    def kept() -> tuple[list[Outcome], dict[str, Any]]:
        took = seconds + time.monotonic() - started
        return so_far(chosen, known, lambda each: conditions(options, each, took), tables.machine_readable, options.json)

    with tempfile.TemporaryDirectory(prefix="references-") as folder:
        references = References(Path(folder))
        judge_all(
            left,
            options.jobs,
            lambda case: compare(case, options.longest, references, options.keep),
            show_progress(len(left)),
            known,
            kept,
        )
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
        tables.write_documentation(PAGE, outcomes, in_words(held))
    return 0 if score("all", outcomes).reaches_goals() else 1


if __name__ == "__main__":
    sys.exit(main())
