"""Run every check over a recorded run. A check that crashes is an `error`, never a pass."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from trueline.checks.base import Check, registry
from trueline.model import Conclusion, Finding
from trueline.store import CLOSER_FOLDER, Run, RunBeingRead
from trueline.store.reruns import rerun_notes

# What compiled graphs can be made to show.
_SHOWN_ON_REQUEST = {"layers", "gradients"}


def run_checks(run: Run, progress: Callable[[str], None] | None = None) -> list[Finding]:
    """The findings of all items, in checklist order. `progress` is told each id before its check starts."""
    findings = []
    for check in registry().values():
        if progress is not None:
            progress(check.id)
        findings.append(_concluded(run, check))
    return findings


def look_again(run: Run, closer: Run, findings: list[Finding], doubt: str | None = None) -> list[Finding]:
    """The same findings, but of items for which something was unseen in the run: those of a second recording that shows more,
    and maybe ends earlier, where that one finds a problem, or can tell at all. `doubt`: what it did not find as the run had."""
    beside = "" if doubt is None else f" Not all was as the first time: {doubt}."
    return [_look_again(run, closer, finding, beside) for finding in findings] if closer.steps else findings


def _look_again(run: Run, closer: Run, finding: Finding, beside: str) -> Finding:
    check = registry()[finding.id]
    if not (check.needs | check.gains) & (run.unseen - closer.unseen):
        return finding
    again = _concluded(closer, check)
    told = again.conclusion in (Conclusion.NO_PROBLEM, Conclusion.NOT_APPLICABLE)
    if again.conclusion is not Conclusion.PROBLEM_FOUND and not (told and finding.conclusion is Conclusion.NOT_CHECKED):
        return finding
    where = f"Seen in the first {len(closer.steps)} steps, run again in PyNative mode.{beside}"
    return msgspec.structs.replace(again, limits=f"{again.limits} {where}".strip())


def _concluded(run: Run, check: Check) -> Finding:
    """The finding of one check; where watches failed, only if it rests on nothing that those have missed."""
    reading = RunBeingRead(run)
    finding = _conclude(reading, check)
    if not reading.missing:
        return finding
    failed = " and ".join(each.in_words for each in reading.missing.values())
    why = f"{failed}, and what the item looks at is not complete. The traceback: trueline doctor --last"
    return Finding(check.id, check.title, Conclusion.NOT_CHECKED, f"Not checked: {why}", limits=why)


def rests_on_failed(run: Run, finding: Finding) -> bool:
    """Whether nothing was concluded because of a watch that failed."""
    return finding.conclusion is Conclusion.NOT_CHECKED and any(each.in_words in finding.limits for each in run.failed_anywhere)


def _conclude(run: Run, check: Check) -> Finding:
    try:
        return _unless_unseen(run, check, check.conclude(run))
    except Exception as problem:  # noqa: BLE001 - whatever a check dies of, the other items must still be concluded
        return Finding(
            check.id,
            check.title,
            Conclusion.ERROR,
            f"The check failed: {type(problem).__name__}: {problem}",
            limits="Nothing was concluded. Please report this with the run directory.",
        )


def _unless_unseen(run: Run, check: Check, finding: Finding) -> Finding:
    """A pass, or "does not apply", is worth nothing where what the item looks at ran inside of compiled graphs."""
    missing = sorted(check.needs & run.unseen)
    if not missing or finding.conclusion in (Conclusion.PROBLEM_FOUND, Conclusion.ERROR):
        return finding
    note = rerun_notes(run.directory).get(CLOSER_FOLDER)
    refused = "" if note is None or note.refused is None else f", and no closer look was taken: {note.refused}"
    why = (
        f"the {' and '.join(missing)} of compiled graphs cannot be seen{refused}. "
        "Record the script in PyNative mode with: trueline run --pynative SCRIPT"
    )
    if set(missing) <= _SHOWN_ON_REQUEST:
        why += "; or in graph mode with: trueline run --graph-tensors SCRIPT"
    return Finding(check.id, check.title, Conclusion.NOT_CHECKED, f"Not checked: {why}", limits=why)
