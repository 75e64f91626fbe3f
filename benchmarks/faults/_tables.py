"""The figures as text: a table for the terminal, Markdown for the documentation, JSON for programs, the list of misses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

from benchmarks.faults._score import (
    CAUSE_GOAL,
    GRAPH_RECALL_GOAL,
    PLACE_GOAL,
    RECALL_GOAL,
    Outcome,
    Score,
    as_diagnosed,
    in_graph_mode,
    misses,
    reaches_goals,
    score,
    scores_by_item,
    scores_by_origin,
    scores_by_way,
    what_is_wrong,
)
from benchmarks.writing import aligned, markdown, replace_between

BEGIN = "<!-- begin {}: written by make bench-faults, never by hand -->"
END = "<!-- end {}: written by make bench-faults -->"
HEADINGS = ("", "recall", "top-1 cause", "place", "healthy runs", "false alarms", "s per script")


def _row(each: Score) -> list[str]:
    healthy = [str(each.healthy), str(each.alarms)] if each.healthy else ["–", "–"]
    return [each.title, each.recall.text(), each.cause.text(), each.place.text(), *healthy, f"{each.seconds:.1f}"]


def _rows(outcomes: list[Outcome]) -> list[list[str]]:
    told, compiled = as_diagnosed(outcomes), in_graph_mode(outcomes)
    parts = [*scores_by_item(told), *scores_by_origin(told), *scores_by_way(told), score("all", told)]
    parts += [score("MindSpore, graph mode as it is", compiled)] if compiled else []
    return [_row(each) for each in parts]


def terminal_table(outcomes: list[Outcome]) -> str:
    """Aligned columns, one line per item, per origin, per framework and mode, and for all."""
    items = len(scores_by_item(as_diagnosed(outcomes)))
    lines = aligned([HEADINGS, *_rows(outcomes)])
    rule = "-" * len(lines[0])
    return "\n".join([lines[0], rule, *lines[1 : 1 + items], rule, *lines[1 + items :]])


def totals(outcomes: list[Outcome]) -> list[tuple[str, str, str, bool]]:
    """Figure, goal, measured, reached: one row each."""
    told, compiled = as_diagnosed(outcomes), score("graph", in_graph_mode(outcomes))
    whole = score("all", told)
    rows = [
        ("recall", f"≥ {RECALL_GOAL:.0%}", whole.recall.full_text(), whole.recall.reaches(RECALL_GOAL)),
        ("top-1 cause", f"≥ {CAUSE_GOAL:.0%}", whole.cause.full_text(), whole.cause.reaches(CAUSE_GOAL)),
        ("line or module", f"≥ {PLACE_GOAL:.0%}", whole.place.full_text(), whole.place.reaches(PLACE_GOAL)),
        ("healthy runs with an alarm", "0", f"{whole.alarms}/{whole.healthy}", whole.alarms == 0),
        ("scripts without a complete diagnosis", "0", f"{whole.broken}/{len(told)}", whole.broken == 0),
    ]
    if whole.reported.total:
        rows.append(("on purpose, must be reported", "all", whole.reported.text(), whole.reported.hits == whole.reported.total))
    if compiled.recall.total or compiled.healthy:
        reached = compiled.recall.reaches(GRAPH_RECALL_GOAL)
        rows.append(("graph mode as it is: recall", f"≥ {GRAPH_RECALL_GOAL:.0%}", compiled.recall.full_text(), reached))
        rows.append(("graph mode as it is: alarms", "0", f"{compiled.alarms}/{compiled.healthy}", compiled.alarms == 0))
    return [(name, goal.replace("%", " %"), measured, reached) for name, goal, measured, reached in rows]


def miss_lines(outcomes: list[Outcome]) -> list[str]:
    """Each miss with what was said instead."""
    lines = []
    for each in misses(outcomes):
        wrong = what_is_wrong(each) or "incomplete"
        planted = f" [{each.note}]" if each.note else ""
        expected = f"; expected {each.item}" if each.kind != "healthy" else ""
        place = f" at {each.expected_place}" if each.expected_place and each.kind != "healthy" else ""
        cause = f"; cause named: {each.cause}" if each.cause else ""
        trouble = f"; {each.problem}" if each.problem and each.problem != each.said else ""
        lines.append(f"{wrong}: {each.name}{planted}{expected}{place}{cause}{trouble}\n    {each.said}")
    return lines


def planted_rows(outcomes: list[Outcome]) -> list[list[str]]:
    """One row per mutation: what it plants, the item, and how often it was found, named and placed."""
    mutants = [each for each in outcomes if each.origin == "mutant"]
    kinds = sorted({(each.item or "", each.note) for each in mutants})
    rows = []
    for item, note in kinds:
        part = score(note, (each for each in mutants if (each.item, each.note) == (item, note)))
        rows.append([f"{item} {note}", part.recall.text(), part.cause.text(), part.place.text()])
    return rows


def documentation(outcomes: list[Outcome], conditions: str) -> str:
    """What stands between the marks of docs/fault-benchmark.md."""
    parts = ["", conditions, ""]
    goals = [[name, goal, measured, "yes" if reached else "**no**"] for name, goal, measured, reached in totals(outcomes)]
    parts += [*markdown(("figure", "goal", "measured (95 % interval)", "reached"), goals), ""]
    parts += [*markdown(("item", *HEADINGS[1:]), _rows(outcomes)), ""]
    if planted := planted_rows(outcomes):
        parts += ["Faults planted into the base scripts:", ""]
        parts += [*markdown(("fault", "recall", "top-1 cause", "place"), planted), ""]
    wrong = [f"- {what_is_wrong(each) or 'incomplete'}: `{each.name}`{_instead(each)}" for each in misses(outcomes)]
    return "\n".join([*parts, "Not as expected:", "", *(wrong or ["- nothing"]), ""])


def _instead(outcome: Outcome) -> str:
    planted = f" ({outcome.note})" if outcome.note else ""
    if outcome.found:
        return f"{planted}, said: {', '.join(outcome.found)}" + (f" at {outcome.told_place}" if outcome.told_place else "")
    return f"{planted}, said: nothing found"


def write_documentation(page: Path, framework: str, outcomes: list[Outcome], conditions: str) -> None:
    """Replace what stands between the framework's marks of the page, and nothing else."""
    replace_between(page, BEGIN.format(framework), END.format(framework), documentation(outcomes, conditions))


def machine_readable(outcomes: list[Outcome], conditions: dict[str, Any]) -> str:
    """Everything, as JSON."""
    told = as_diagnosed(outcomes)
    parts = {each.title: dataclasses.asdict(each) for each in [*scores_by_item(told), *scores_by_way(told), score("all", told)]}
    whole: dict[str, Any] = {
        "conditions": conditions,
        "reached": reaches_goals(outcomes),
        "scores": parts,
        "outcomes": [dataclasses.asdict(each) | {"wrong": what_is_wrong(each)} for each in outcomes],
    }
    return json.dumps(whole, indent=1) + "\n"
