"""Comparing with a reference: record it, run both sides aligned, compare."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from trueline.cli.progress import Progress
from trueline.cli.recording import record_aside, record_script
from trueline.cli.script import Script
from trueline.compare import map_file as maps
from trueline.compare.runs.comparison import compare_runs, parameters_of
from trueline.errors import TruelineError
from trueline.launch.ranks import launcher_of
from trueline.model import Comparison
from trueline.reading import reading
from trueline.rerun.aligned import aligned_runs, is_ready, record_mine, record_reference, seen, why_it_failed, why_not_aligned
from trueline.rerun.sandbox.start import Way
from trueline.rerun.terms import Terms
from trueline.store import Run, find_run
from trueline.store.origin import is_own


class Reference:
    """What the user gave as reference: a script with its arguments, or a run."""

    def __init__(self, given: str, terms: Terms, *, output_to_stderr: bool, trusted: bool) -> None:
        self._output_to_stderr = output_to_stderr
        self.trusted = trusted
        self.terms = terms
        words = shlex.split(given)
        if not words:
            raise TruelineError("--reference takes a script or a run. Received nothing.")
        self.script: Script | None = None
        self.directory: Path | None = None
        # Whether it was recorded now, without a trace in the files.
        self.is_aside = False
        launches = launcher_of(words[0], as_module=False) is not None
        if launches or Path(words[0]).is_file() or words[0].endswith(".py"):
            self.script = Script(words[0], None, tuple(words[1:]))
            self.script.check()
        else:
            self.directory = find_run(given)

    def recorded(self, beside: Run | None) -> Run:
        """The reference's run, recorded now unless it was before; beside a run of this command, if that was recorded now."""
        if self.directory is None:
            assert self.script is not None  # noqa: S101 - one of the two is given
            way, to_stderr = self.terms.way, self._output_to_stderr
            # Both scripts often write to the same files: those of the one that is diagnosed are to stay.
            if way is not Way.UNSAFE:
                self.directory = record_aside(self.script, beside, output_to_stderr=to_stderr)
            self.is_aside = self.directory is not None
            if self.directory is None:
                again = way is not Way.NO
                self.directory = record_script(self.script, None, output_to_stderr=to_stderr, again=again)
        return Run(self.directory)


def script_again(run: Run, *, trusted: bool) -> tuple[Script | None, str | None]:
    """The command of a recorded run, to be run a second time, or why it is not: what a run from elsewhere says is data."""
    command, script = run.info.command, run.info.script
    found = None
    if Path(run.info.cwd) == Path.cwd() and command:
        if command[0] == "-m" and len(command) > 1:
            found = Script(None, command[1], tuple(command[2:]))
        elif script is not None and Path(script).is_file():
            found = Script(script, None, tuple(command[1:]))
    if found is None:
        return None, f"{run.info.name} was recorded in {run.info.cwd}, or its script is gone"
    if not trusted and not is_own(run.directory, run.info):
        return None, f"{run.info.name} was not recorded by you in this place (--trust runs its command all the same)"
    return found, None


def compare_with(
    reference: Reference, run: Run, script: Script | None, map_file: str | None = None, write_map: str | None = None
) -> tuple[str, Comparison]:
    """The name of the reference's run, and how mine compares with it."""
    fixed = None if map_file is None else maps.read_map(Path(map_file))
    other = reference.recorded(run if script is not None else None)
    if not other.steps:
        raise TruelineError(
            f"The reference {other.info.name} never trained: there is nothing to compare with. See what it printed above."
        )
    terms = reference.terms
    given = (why_not_aligned(each, terms) for each in (run, other))
    reasons = list(dict.fromkeys(filter(None, given)))
    doubts: list[str] = []
    if not reasons:
        reasons, doubts = _run_aligned(reference, other, run, script, fixed)
    aligned = aligned_runs(run, other)
    shown = (seen(run), seen(other)) if aligned is None else (aligned.mine, aligned.reference)
    if write_map is not None:
        maps.write_map(parameters_of(*shown, fixed), Path(write_map))
    why = why_it_failed(run, other) or (f"Nothing was run again: {'; '.join(reasons)}." if reasons else None)
    # Below its columns a record can say anything, and a comparison looks at all of it.
    with reading(other.directory, "Record the reference again."):
        comparison = compare_runs(seen(run), seen(other), aligned, fixed, why)
    if doubts:
        verdict = f"{comparison.verdict} Run again, not all was as the first time: {'; '.join(doubts)}."
        comparison = msgspec.structs.replace(comparison, verdict=verdict)
    return other.info.name, comparison


def _run_aligned(
    reference: Reference, other: Run, run: Run, script: Script | None, fixed: dict[str, str] | None
) -> tuple[list[str], list[str]]:
    """Run both again so that they can be compared step by step; gives the reasons where that cannot be, and what is in doubt."""
    terms = reference.terms
    mine, why_not_mine = (script, None) if script is not None else script_again(run, trusted=reference.trusted)
    if mine is None:
        return [str(why_not_mine)], []
    made = []
    if not is_ready(other):
        theirs, why_not = (
            (reference.script, None) if reference.script is not None else script_again(other, trusted=reference.trusted)
        )
        if theirs is None:
            return [str(why_not)], []
        words = "Running the reference without dropout, twice (Ctrl-C leaves it out)"
        with Progress([], other.directory, words) as progress:
            beside = run if reference.is_aside and script is not None else None
            made.append(record_reference(other, theirs.command, terms, beside, progress.follow))
    if is_ready(other):
        words = "Running the script from the reference's weights, with its batches"
        with Progress([], run.directory, words) as progress:
            made.append(record_mine(run, mine.command, other, terms, fixed, progress.follow))
    refused = next((each.refused for each in made if each.refused is not None), None)
    return [] if refused is None else [refused], sorted({each.doubt for each in made if each.doubt is not None})
