"""What counts: recall, the cause named, the place, false alarms. Shares come with their Wilson interval."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.faults._case import SCRIPT, Case
from benchmarks.shares import Share

RECALL_GOAL = 0.95
CAUSE_GOAL = 0.90
PLACE_GOAL = 0.85
# Compiled graphs show less of themselves.
GRAPH_RECALL_GOAL = 0.90


@dataclass(frozen=True)
class Outcome:
    """What was said of one case, beside what was expected."""

    name: str
    kind: str
    origin: str
    item: str | None
    seconds: float
    note: str = ""
    way: str = ""
    """The framework, and its mode."""
    problem: str | None = None
    """Why there is no diagnosis, or an incomplete one; None in the ordinary case."""
    found: list[str] = field(default_factory=list)
    """The items that are problem_found."""
    cause: str | None = None
    expected_place: str | None = None
    told_place: str | None = None
    """Where the finding of the expected item is; for a healthy case, where the first finding is."""
    recalled: bool = False
    caused: bool = False
    placed: bool | None = None
    """None when the case expects no place."""
    said: str = ""
    """The conclusion of the expected item and its summary, or the findings of a healthy case."""


def outcome_of(case: Case, diagnosis: dict[str, Any] | None, seconds: float, problem: str | None) -> Outcome:
    """Compare a diagnosis with what the case expects."""
    expected = _expected_place(case)
    start = Outcome(case.name, case.kind, case.origin, case.item, seconds, case.note, case.way, problem, expected_place=expected)
    if diagnosis is None:
        return replace(start, placed=False if expected else None, said=problem or "")
    entries = {entry["id"]: entry for entry in diagnosis["checklist"]}
    found = [id_ for id_, entry in entries.items() if entry["conclusion"] == "problem_found"]
    failed = [f"{id_} failed: {entry['summary']}" for id_, entry in entries.items() if entry["conclusion"] == "error"]
    own = entries.get(case.item or "")
    recalled = case.item in found
    place = (own or {}).get("location") if case.kind != "healthy" else (entries[found[0]]["location"] if found else None)
    return replace(
        start,
        problem=problem or _script_problem(case, diagnosis) or ("; ".join(failed) or None),
        found=found,
        cause=diagnosis["verdict"]["cause"],
        told_place=_told_place(place),
        recalled=recalled,
        caused=recalled and diagnosis["verdict"]["cause"] == case.item,
        placed=(recalled and _is_place(case, place)) if case.has_place else None,
        said=_said(case, entries, found),
    )


def _script_problem(case: Case, diagnosis: dict[str, Any]) -> str | None:
    """What went wrong with script or recording: a script that does not end proves nothing, unless its fault is to fail."""
    recording = diagnosis.get("recording") or {}
    if recording.get("recorder_error"):
        return f"the recorder failed: {recording['recorder_error']}"
    if recording.get("status") not in (None, "finished") and (case.kind == "healthy" or case.origin == "mutant"):
        return f"the script itself ended as {recording['status']}: {recording['error']}"
    return None


def _expected_place(case: Case) -> str | None:
    if case.lines:
        return "line " + " or ".join(str(line) for line in case.lines)
    return f"module {case.module}" if case.module else None


def _told_place(location: dict[str, Any] | None) -> str | None:
    if location is None:
        return None
    parts = [f"{location['file']}:{location['line']}"] if location["file"] and location["line"] else []
    return " ".join(parts + ([f"module {location['module']}"] if location["module"] else [])) or None


def _is_place(case: Case, location: dict[str, Any] | None) -> bool:
    if location is None:
        return False
    if case.lines:
        return location["file"] == SCRIPT and location["line"] in case.lines
    return bool(location["module"] == case.module)


def _said(case: Case, entries: dict[str, Any], found: list[str]) -> str:
    """For people: the findings, first the expected item whatever it concluded."""
    ids = ([case.item] if case.kind != "healthy" and case.item else []) + [id_ for id_ in found if id_ != case.item]
    if case.kind == "healthy":
        ids = found
    told = []
    for id_ in ids:
        entry = entries.get(id_)
        if entry is None:
            told.append(f"{id_} is not a check here")
            continue
        place = _told_place(entry["location"])
        told.append(f"{id_} {entry['conclusion']}: {entry['summary']}" + (f" @ {place}" if place else ""))
    return " | ".join(told) or "nothing found"


@dataclass(frozen=True)
class Score:
    """The figures of a set of outcomes: one item's, one origin's or all."""

    title: str
    recall: Share
    cause: Share
    place: Share
    alarms: int
    """Healthy runs with anything found."""
    healthy: int
    reported: Share
    seconds: float
    """Median per script."""
    broken: int
    """Scripts without a complete diagnosis."""

    def reaches_goals(self) -> bool:
        return (
            self.recall.reaches(RECALL_GOAL)
            and self.cause.reaches(CAUSE_GOAL)
            and self.place.reaches(PLACE_GOAL)
            and self.alarms == 0
            and self.broken == 0
        )


def reaches_goals(outcomes: Iterable[Outcome]) -> bool:
    """All goals, by everything that was run."""
    every = list(outcomes)
    whole, compiled = score("all", as_diagnosed(every)), score("graph mode", in_graph_mode(every))
    return whole.reaches_goals() and compiled.recall.reaches(GRAPH_RECALL_GOAL) and compiled.alarms + compiled.broken == 0


def score(title: str, outcomes: Iterable[Outcome]) -> Score:
    mine = list(outcomes)
    faulty = [each for each in mine if each.kind == "faulty"]
    healthy = [each for each in mine if each.kind == "healthy"]
    reported = [each for each in mine if each.kind == "reported"]
    placeable = [each for each in faulty if each.placed is not None]
    return Score(
        title=title,
        recall=Share(sum(each.recalled for each in faulty), len(faulty)),
        cause=Share(sum(each.caused for each in faulty), len(faulty)),
        place=Share(sum(bool(each.placed) for each in placeable), len(placeable)),
        alarms=sum(bool(each.found) for each in healthy),
        healthy=len(healthy),
        reported=Share(sum(each.recalled for each in reported), len(reported)),
        seconds=statistics.median(each.seconds for each in mine) if mine else 0.0,
        broken=sum(each.problem is not None for each in mine),
    )


def scores_by_item(outcomes: list[Outcome]) -> list[Score]:
    """One per item, mutants included; healthy bases and strangers belong to no item."""
    items = sorted({each.item for each in outcomes if each.item})
    return [score(item, (each for each in outcomes if each.item == item)) for item in items]


def scores_by_origin(outcomes: list[Outcome]) -> list[Score]:
    names = {"case": "written cases", "mutant": "planted faults", "base": "base scripts", "stranger": "strangers' scripts"}
    present = [origin for origin in names if any(each.origin == origin for each in outcomes)]
    return [score(names[origin], (each for each in outcomes if each.origin == origin)) for origin in present]


def scores_by_way(outcomes: list[Outcome]) -> list[Score]:
    """One per framework and mode, where there is more than one."""
    ways = sorted({each.way for each in outcomes})
    return [score(way, (each for each in outcomes if each.way == way)) for way in ways] if len(ways) > 1 else []


def as_diagnosed(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """What `trueline diagnose` says by itself."""
    return [each for each in outcomes if each.origin != "graph"]


def in_graph_mode(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """What it says of the same scripts when they are recorded in graph mode, as they are."""
    return [each for each in outcomes if each.origin == "graph"]


def misses(outcomes: Iterable[Outcome]) -> list[Outcome]:
    """What did not come out as expected: not found, another cause, another place, a false alarm, or no diagnosis."""
    return [each for each in outcomes if each.problem or what_is_wrong(each)]


def what_is_wrong(outcome: Outcome) -> str:
    """In a word or two; empty when everything came out as expected."""
    if outcome.kind == "healthy":
        return "false alarm" if outcome.found else ("no diagnosis" if outcome.problem else "")
    if not outcome.recalled:
        return "no diagnosis" if outcome.problem and not outcome.found else "not found"
    if not outcome.caused and outcome.kind == "faulty":
        return "another cause"
    return "another place" if outcome.placed is False else ""
