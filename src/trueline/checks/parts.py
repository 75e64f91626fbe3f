"""One conclusion of several, for items that are concluded part by part: per loader, loss curve, input …

A part is something in the run that the item is about. One of which nothing could be said is a
finding of its own, `not_checked` with the reason, never left out: what another part shows says
nothing of it. A rule that cannot be applied to a part which other rules judge is no part; the
limits of the finding tell of it.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from trueline.model import Conclusion, Evidence, Finding
from trueline.views.parameters import listed


class Part(msgspec.Struct, frozen=True):
    """`name` is what a sentence calls the part."""

    name: str
    finding: Finding


def worst_of(parts: Iterable[Part]) -> Finding:
    """A part that is a problem makes the item one; the surest is reported. Otherwise one that could
    not be checked leaves the item not checked. Otherwise the item passes if it applies to any part,
    with the confidence of the least sure."""
    of: dict[Conclusion, list[Part]] = {}
    for part in parts:
        of.setdefault(part.finding.conclusion, []).append(part)
    if problems := of.get(Conclusion.PROBLEM_FOUND):
        return max((part.finding for part in problems), key=lambda finding: finding.confidence)
    passed = of.get(Conclusion.NO_PROBLEM, [])
    if unknown := of.get(Conclusion.NOT_CHECKED):
        return _not_checked(unknown, passed)
    if passed:
        return min((part.finding for part in passed), key=lambda finding: finding.confidence)
    return of[Conclusion.NOT_APPLICABLE][0].finding


def _not_checked(unknown: list[Part], passed: list[Part]) -> Finding:
    """What is missing, for which parts, and what the other ones show."""
    names: dict[str, list[str]] = {}
    for part in unknown:
        names.setdefault(part.finding.limits, []).append(part.name)
    first = unknown[0].finding
    if len(names) == 1 and not passed:
        return first
    missing = "; ".join(f"{listed(named)}: {reason.removesuffix('.')}" for reason, named in names.items()) + "."
    seen = [Evidence(f"{part.name}: {part.finding.summary}") for part in passed]
    return msgspec.structs.replace(first, summary=f"Not checked: {missing}", limits=missing, evidence=[*first.evidence, *seen])
