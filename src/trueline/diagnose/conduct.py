"""A diagnosis of a recorded run, from the second runs that it wants to the verdict."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import closing

from trueline.checks import look_again, run_checks
from trueline.diagnose.conclude import diagnose, with_comparison
from trueline.errors import RunNotFound
from trueline.model import Comparison, Diagnosis, Finding
from trueline.store import CLOSER_FOLDER, Run
from trueline.store.reruns import rerun_notes

# What records a script a second time beside its run, where that can show something.
SecondRun = Callable[[Run], None]
# What records and aligns a reference: the name of its run, and how this one compares with it.
Compare = Callable[[Run], tuple[str, Comparison]]


def conduct(
    run: Run,
    *,
    second_runs: Iterable[SecondRun] = (),
    compare: Compare | None = None,
    about_to: Callable[[str], None] | None = None,
) -> Diagnosis:
    """`about_to` is told the id of each item before its check starts."""
    # Read something first: a damaged file is one message, not a failure of every check.
    len(run.steps)
    for record in second_runs:
        record(run)
    diagnosis = _looked_closer(run, run_checks(run, about_to))
    return diagnosis if compare is None else with_comparison(diagnosis, *compare(run))


def _looked_closer(run: Run, findings: list[Finding]) -> Diagnosis:
    """Better founded where the run was recorded a second time in a mode that shows more."""
    try:
        closer = Run(run.directory / CLOSER_FOLDER)
    except RunNotFound:
        return diagnose(run, findings)
    with closing(closer):
        note = rerun_notes(run.directory).get(CLOSER_FOLDER)
        doubt = note.doubt if note is not None else None
        return diagnose(run, look_again(run, closer, findings, doubt), closer)
