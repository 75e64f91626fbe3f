"""The figures as text: tables for the terminal and the documentation, JSON for programs, the list of misses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from benchmarks.differences._case import FAITHFUL
from benchmarks.differences._kind import KINDS
from benchmarks.differences._score import (
    CAUSE_GOAL,
    MODULE_GOAL,
    PHASE_GOAL,
    Outcome,
    Score,
    misses,
    score,
    scores_by,
    what_is_wrong,
)
from benchmarks.writing import aligned, markdown, replace_between

BEGIN = "<!-- begin differences: written by make bench-differences, never by hand -->"
END = "<!-- end differences: written by make bench-differences -->"
HEADINGS = ("", "phase", "module", "cause", "line", "faithful, diverged", "s per pair")


def _row(each: Score) -> list[str]:
    shares = [each.phase, each.module, each.cause, each.line, each.alarms]
    return [each.title, *(share.text() for share in shares), f"{each.seconds:.1f}"]


def parts(outcomes: list[Outcome]) -> list[list[Score]]:
    """The scores by model and way, by kind of difference, by way, and of all."""
    by_model = scores_by(outcomes, lambda each: f"{each.model}, {each.way}")
    kinds = sorted((each for each in outcomes if each.kind != FAITHFUL), key=lambda each: list(KINDS).index(each.kind))
    by_kind = scores_by(kinds, lambda each: KINDS[each.kind].title)
    return [by_model, by_kind, [*scores_by(outcomes, lambda each: each.way), score("all", outcomes)]]


def terminal_table(outcomes: list[Outcome]) -> str:
    """Aligned columns, with a rule between the parts."""
    every = parts(outcomes)
    lines = aligned([HEADINGS, *(_row(each) for part in every for each in part)])
    rule = "-" * max(map(len, lines))
    told, rest = [lines[0]], lines[1:]
    for part in every:
        told += [rule, *rest[: len(part)]]
        rest = rest[len(part) :]
    return "\n".join(told)


def totals(outcomes: list[Outcome]) -> list[tuple[str, str, str, bool]]:
    """Figure, goal, measured, reached: one row each."""
    whole = score("all", outcomes)
    rows = [
        ("phase", f"≥ {PHASE_GOAL:.0%}", whole.phase.full_text(), whole.phase.reaches(PHASE_GOAL)),
        ("module", f"≥ {MODULE_GOAL:.0%}", whole.module.full_text(), whole.module.reaches(MODULE_GOAL)),
        ("cause in words", f"≥ {CAUSE_GOAL:.0%}", whole.cause.full_text(), whole.cause.reaches(CAUSE_GOAL)),
        ("faithful pairs with a divergence", "0", whole.alarms.text(), whole.alarms.hits == 0),
        ("pairs without a comparison", "0", f"{whole.broken}/{len(outcomes)}", whole.broken == 0),
    ]
    return [(name, goal.replace("%", " %"), measured, reached) for name, goal, measured, reached in rows]


def miss_lines(outcomes: list[Outcome]) -> list[str]:
    """Each miss with what was expected and what was said."""
    return [f"{what_is_wrong(each)}: {each.name}; expected {each.expected}\n    {each.said}" for each in misses(outcomes)]


def documentation(outcomes: list[Outcome], conditions: str) -> str:
    """What stands between the marks of docs/difference-benchmark.md."""
    goals = [[name, goal, measured, "yes" if reached else "**no**"] for name, goal, measured, reached in totals(outcomes)]
    told = ["", conditions, "", *markdown(("figure", "goal", "measured (95 % interval)", "reached"), goals), ""]
    for title, part in zip(("model and way", "difference", "way"), parts(outcomes), strict=True):
        told += [*markdown((title, *HEADINGS[1:]), [_row(each) for each in part]), ""]
    wrong = [f"- {what_is_wrong(each)}: `{each.name}`, said: {each.said}" for each in misses(outcomes)]
    return "\n".join([*told, "Not as expected:", "", *(wrong or ["- nothing"]), ""])


def write_documentation(page: Path, outcomes: list[Outcome], conditions: str) -> None:
    replace_between(page, BEGIN, END, documentation(outcomes, conditions))


def machine_readable(outcomes: list[Outcome], conditions: dict[str, Any]) -> str:
    """Everything, as JSON."""
    whole: dict[str, Any] = {
        "conditions": conditions,
        "reached": score("all", outcomes).reaches_goals(),
        "scores": {each.title: dataclasses.asdict(each) for part in parts(outcomes) for each in part},
        "outcomes": [dataclasses.asdict(each) | {"wrong": what_is_wrong(each)} for each in outcomes],
    }
    return json.dumps(whole, indent=1) + "\n"
