"""Check a recorded run, write the report and the JSON document, and choose the exit code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar

from trueline.diagnose import diagnose_nothing
from trueline.diagnose.conduct import Compare, SecondRun, conduct
from trueline.diagnose.ending import how_it_ended
from trueline.errors import RunNotFound, TruelineError
from trueline.model import Conclusion, Diagnosis, RunInfo
from trueline.output import warn
from trueline.report.console import output_console, write_out
from trueline.report.json import diagnosis_json
from trueline.report.terminal import print_report
from trueline.store import Run, read_info
from trueline.store.format import recorded_ranks

NOTHING_FOUND, PROBLEM_FOUND, FAILED, INCOMPLETE = 0, 1, 2, 3
STANDARD_OUTPUT = "-"

_Made = TypeVar("_Made")


def check_json_target(target: str | None) -> None:
    """Refuse a place that cannot be written to before hours of training are spent on it."""
    if target is None or target == STANDARD_OUTPUT:
        return
    path = Path(target)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise TruelineError(f"--json takes a file in an existing folder, or - for standard output. Received {target!r}.")


def report_run(
    directory: Path,
    *,
    json_target: str | None,
    verbose: bool,
    strict: bool = False,
    second_runs: Sequence[SecondRun] = (),
    comparison: Compare | None = None,
) -> int:
    """Everything that `check` and `diagnose` do with a run directory; gives the exit code."""
    info = read_info(directory)
    if not recorded_ranks(directory):
        reason = _why_nothing(info)
        _write_json(diagnose_nothing(info.name, reason), info, json_target)
        raise RunNotFound(f"{reason} (Run {info.name}.)")
    run = Run(directory)
    try:
        diagnosis = _checked(run, second_runs, comparison)
        # The document first: whoever closes the pipe of the report early must not lose it.
        _write_json(diagnosis, run.info, json_target)
        if json_target != STANDARD_OUTPUT:
            print_report(output_console(), diagnosis, run, verbose=verbose)
        code = exit_code(diagnosis, run)
        return _strict_code(diagnosis) if strict and code == NOTHING_FOUND else code
    finally:
        run.close()


def exit_code(diagnosis: Diagnosis, run: Run) -> int:
    """0 nothing found, 1 problem found, 2 when nothing can be said because a check crashed, or the script or the recorder
    did before it trained. An inconclusive run is 0 otherwise: nothing was found, and the report says why."""
    if diagnosis.verdict.cause is not None:
        return PROBLEM_FOUND
    if any(finding.conclusion is Conclusion.ERROR for finding in diagnosis.checklist):
        return FAILED
    nothing_to_see = how_it_ended(run.info) or run.info.recorder_error
    return FAILED if not run.steps and nothing_to_see else NOTHING_FOUND


def _strict_code(diagnosis: Diagnosis) -> int:
    """3 where nothing was found in a part of the training only."""
    incomplete = diagnosis.verdict.incomplete
    if incomplete is not None:
        warn(f"the record is incomplete (--strict). {incomplete}")
    elif diagnosis.failed_watches:
        failed = "; ".join(each.in_words for each in diagnosis.failed_watches)
        warn(f"not everything was watched to the end (--strict): {failed}")
    elif diagnosis.unseen:
        warn(f"not everything could be watched (--strict): {', '.join(diagnosis.unseen)}")
    else:
        return NOTHING_FOUND
    return INCOMPLETE


def _checked(run: Run, second_runs: Sequence[SecondRun], comparison: Compare | None) -> Diagnosis:
    console = output_console(stderr=True)
    if not console.is_terminal:
        return conduct(run, second_runs=second_runs, compare=comparison)
    status = console.status("checking")

    def alone(record: Callable[[Run], _Made], run: Run) -> _Made:
        """Second runs have a line of their own on the terminal."""
        status.stop()
        try:
            return record(run)
        finally:
            status.start()

    with status:
        return conduct(
            run,
            second_runs=[partial(alone, record) for record in second_runs],
            compare=None if comparison is None else partial(alone, comparison),
            about_to=lambda check_id: status.update(f"checking {check_id}"),
        )


def _write_json(diagnosis: Diagnosis, info: RunInfo, target: str | None) -> None:
    if target is None:
        return
    write_document(diagnosis_json(diagnosis, info), target)


def write_document(document: bytes, target: str) -> None:
    """Write JSON to a file, or to standard output."""
    if target == STANDARD_OUTPUT:
        write_out(document.decode())
        return
    try:
        Path(target).write_bytes(document)
    except OSError as problem:
        raise TruelineError(
            f"The report cannot be written to {target} ({problem.strerror}). Give another file to --json."
        ) from problem


def _why_nothing(info: RunInfo) -> str:
    if info.recorder_error:
        return f"Nothing was recorded: the recorder stopped before the first step was complete: {info.recorder_error}"
    what = info.script or "The script"
    ended = how_it_ended(info)
    if ended is not None:
        return (
            f"Nothing was recorded: {what} did not get as far as importing PyTorch or MindSpore. {ended} "
            "Run it with plain python first."
        )
    return (
        f"Nothing was recorded: {what} ran to its end and imported neither PyTorch nor MindSpore. "
        "Trueline records training scripts of these two."
    )
