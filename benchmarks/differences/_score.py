"""What counts: the phase, the module, the cause in words, the line; and that faithful pairs stay quiet."""

from __future__ import annotations

import re
import statistics
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from benchmarks.differences._case import FAITHFUL, MINE, Case
from benchmarks.shares import Share

PHASE_GOAL = 0.95
MODULE_GOAL = 0.90
CAUSE_GOAL = 0.80


@dataclass(frozen=True)
class Outcome:
    """What was said of one pair, beside what was expected."""

    name: str
    model: str
    way: str
    kind: str
    seconds: float
    expected: str = ""
    problem: str | None = None
    """Why there is no comparison; None in the ordinary case."""
    diverged: bool = False
    phase: bool = False
    """The phase is right, and the step where one is expected."""
    module: bool = False
    cause: bool = False
    line: bool = False
    said: str = ""


def outcome_of(case: Case, diagnosis: dict[str, Any] | None, seconds: float, problem: str | None = None) -> Outcome:
    """Compare what `trueline diagnose --reference` wrote with what the case expects."""
    start = Outcome(case.name, case.model, case.way, case.kind, seconds, expected_of(case), problem, said=problem or "")
    if diagnosis is None:
        return start
    comparison = diagnosis.get("comparison")
    if comparison is None:
        return replace(start, problem=problem or "the diagnosis holds no comparison", said=diagnosis["verdict"]["headline"])
    found = comparison["first_divergence"]
    told = replace(start, diverged=found is not None, said=_said(comparison, diagnosis["verdict"]["headline"]))
    if found is None or case.difference is None:
        return told
    kind = case.difference.kind
    place = found.get("location") or {}
    in_words = f"{found.get('cause') or ''} {diagnosis['verdict']['headline'] or ''}"
    return replace(
        told,
        phase=found["phase"] in kind.phases and (kind.step is None or abs(found["step"] - kind.step) <= 1),
        module=found["module"] in case.difference.modules,
        cause=says_one_of(kind.words, in_words),
        line=place.get("file") == MINE and place.get("line") in case.lines,
    )


def says_one_of(words: Iterable[str], text: str) -> bool:
    """Whether one of the words begins a word of the text; `lr` is not in "already"."""
    return any(re.search(rf"(?<![^\W_]){re.escape(word)}", text, re.IGNORECASE) for word in words)


def expected_of(case: Case) -> str:
    """What is expected, for people."""
    if case.difference is None:
        return "no divergence"
    kind = case.difference.kind
    at = "" if kind.step is None else f" at step {kind.step}"
    modules = " or ".join(sorted("no module" if name is None else name or "the model itself" for name in case.difference.modules))
    lines = " or ".join(str(line) for line in case.lines)
    return f"{' or '.join(sorted(kind.phases))}{at}, {modules}, line {lines}; one of the words {', '.join(kind.words)}"


def _said(comparison: dict[str, Any], headline: str | None) -> str:
    found = comparison["first_divergence"]
    if found is None:
        return f"no divergence; {headline or 'no headline'}"
    place = found.get("location") or {}
    line = f", line {place.get('line')} of {place.get('file')}" if place else ""
    cause = found.get("cause") or headline or "no cause"
    return f"{found['phase']} at step {found['step']}, {found['module'] or 'no module'}{line}: {cause}"


@dataclass(frozen=True)
class Score:
    """The figures of a set of outcomes."""

    title: str
    phase: Share
    module: Share
    cause: Share
    line: Share
    alarms: Share
    """Faithful pairs with a divergence reported."""
    broken: int
    """Pairs without a comparison."""
    seconds: float
    """Median per pair."""

    def reaches_goals(self) -> bool:
        reached = self.phase.reaches(PHASE_GOAL) and self.module.reaches(MODULE_GOAL) and self.cause.reaches(CAUSE_GOAL)
        return reached and self.alarms.hits == 0 and self.broken == 0


def score(title: str, outcomes: Iterable[Outcome]) -> Score:
    mine = list(outcomes)
    planted = [each for each in mine if each.kind != FAITHFUL]
    pairs = [each for each in mine if each.kind == FAITHFUL]

    def share(right: Callable[[Outcome], bool]) -> Share:
        return Share(sum(right(each) for each in planted), len(planted))

    return Score(
        title=title,
        phase=share(lambda each: each.phase),
        module=share(lambda each: each.module),
        cause=share(lambda each: each.cause),
        line=share(lambda each: each.line),
        alarms=Share(sum(each.diverged for each in pairs), len(pairs)),
        broken=sum(each.problem is not None for each in mine),
        seconds=statistics.median(each.seconds for each in mine) if mine else 0.0,
    )


def scores_by(outcomes: list[Outcome], part: Callable[[Outcome], str]) -> list[Score]:
    """One score for each value of `part`, in the order in which they come."""
    titles = dict.fromkeys(part(each) for each in outcomes)
    return [score(title, (each for each in outcomes if part(each) == title)) for title in titles]


def what_is_wrong(outcome: Outcome) -> str:
    """In a few words; empty when everything that has a goal came out as expected."""
    if outcome.problem:
        return "no comparison"
    if outcome.kind == FAITHFUL:
        return "divergence of a faithful pair" if outcome.diverged else ""
    if not outcome.diverged:
        return "not found"
    named = (("phase", outcome.phase), ("module", outcome.module), ("cause", outcome.cause))
    wrong = [name for name, right in named if not right]
    return f"another {' and '.join(wrong)}" if wrong else ""


def misses(outcomes: Iterable[Outcome]) -> list[Outcome]:
    return [each for each in outcomes if what_is_wrong(each)]
