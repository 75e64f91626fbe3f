"""Which of several findings is the cause: consequences are set aside, then the fault closest to the root of things wins.

A check declares what fires along with it (`CONSEQUENCES`) and how close to the root its fault is (`RANK`): a wrong loss
explains a flat curve, a flat curve does not explain a wrong loss.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from trueline.checks import Check, registry
from trueline.model import Conclusion, Finding

_RANK_OF_UNKNOWN = 50


def mark_consequences(findings: list[Finding], checks: Mapping[str, Check] | None = None) -> list[Finding]:
    """The same findings in the same order, with `consequence_of` set on the problems that another problem brings about.

    Two checks may name each other: then the one that ranks first keeps its place, so one cause is always left.
    """
    known = registry() if checks is None else checks
    problems = _by_rank(findings, known)
    parents: dict[str, str] = {}
    for problem in problems:
        for consequence in known[problem.id].consequences if problem.id in known else ():
            if consequence not in parents and consequence not in _ancestors(problem.id, parents):
                parents[consequence] = problem.id
    return [
        msgspec.structs.replace(finding, consequence_of=parents[finding.id])
        if finding.conclusion is Conclusion.PROBLEM_FOUND and finding.id in parents
        else finding
        for finding in findings
    ]


def cause_of(findings: list[Finding], checks: Mapping[str, Check] | None = None) -> Finding | None:
    """The one problem that best explains the symptom, of findings whose consequences are marked; None without problems."""
    known = registry() if checks is None else checks
    return next((finding for finding in _by_rank(findings, known) if finding.consequence_of is None), None)


def _by_rank(findings: list[Finding], known: Mapping[str, Check]) -> list[Finding]:
    def place(finding: Finding) -> tuple[int, float]:
        return (known[finding.id].rank if finding.id in known else _RANK_OF_UNKNOWN, -finding.confidence)

    return sorted((finding for finding in findings if finding.conclusion is Conclusion.PROBLEM_FOUND), key=place)


def _ancestors(finding_id: str, parents: Mapping[str, str]) -> set[str]:
    found = {finding_id}
    while (finding_id := parents.get(finding_id, "")) and finding_id not in found:
        found.add(finding_id)
    return found
