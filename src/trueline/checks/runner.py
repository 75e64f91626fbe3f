"""Run every check over a recorded run. A check that crashes is an `error`, never a pass."""

from __future__ import annotations

from collections.abc import Callable

from trueline.checks.base import registry
from trueline.model import Conclusion, Finding
from trueline.store import Run


def run_checks(run: Run, progress: Callable[[str], None] | None = None) -> list[Finding]:
    """The findings of all items, in checklist order. `progress` is told each id before its check starts."""
    findings = []
    for check in registry().values():
        if progress is not None:
            progress(check.id)
        try:
            findings.append(check.conclude(run))
        except Exception as problem:  # noqa: BLE001 - whatever a check dies of, the other items must still be concluded
            findings.append(
                Finding(
                    check.id,
                    check.title,
                    Conclusion.ERROR,
                    f"The check failed: {type(problem).__name__}: {problem}",
                    limits="Nothing was concluded. Please report this with the run directory.",
                )
            )
    return findings
