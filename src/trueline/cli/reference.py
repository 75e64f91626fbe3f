"""Comparing with a reference: record it, run both sides aligned, compare."""

from __future__ import annotations

import shlex
from pathlib import Path

from trueline.cli.progress import Progress
from trueline.cli.recording import record_script
from trueline.cli.script import Script
from trueline.compare import map_file as maps
from trueline.compare.runs import compare_runs, parameters_of
from trueline.errors import TruelineError
from trueline.model import Comparison
from trueline.rerun.aligned import aligned_runs, is_ready, record_mine, record_reference, seen, why_it_failed, why_not_aligned
from trueline.store import ALIGNED_FOLDER, Run, find_run


class Reference:
    """What the user gave as reference: a script with its arguments, or a run."""

    def __init__(self, given: str, *, output_to_stderr: bool) -> None:
        self._output_to_stderr = output_to_stderr
        words = shlex.split(given)
        if not words:
            raise TruelineError("--reference takes a script or a run. Received nothing.")
        self.script: Script | None = None
        self.directory: Path | None = None
        if Path(words[0]).is_file() or words[0].endswith(".py"):
            self.script = Script(words[0], None, tuple(words[1:]))
            self.script.check()
        else:
            self.directory = find_run(given)

    def recorded(self) -> Run:
        """The reference's run, recorded now unless it was before."""
        if self.directory is None:
            assert self.script is not None  # noqa: S101 - one of the two is given
            self.directory = record_script(self.script, None, output_to_stderr=self._output_to_stderr)
        run = Run(self.directory)
        if self.script is None:
            self.script = _script_of(run)
        return run


def _script_of(run: Run) -> Script | None:
    """The script of a recorded run, when it can be run again from here."""
    if run.info.script is None or Path(run.info.cwd) != Path.cwd() or not Path(run.info.script).is_file():
        return None
    return Script(run.info.script, None, tuple(run.info.command[1:]))


def compare_with(
    reference: Reference, run: Run, script: Script | None, map_file: str | None = None, write_map: str | None = None
) -> tuple[str, Comparison]:
    """The name of the reference's run, and how mine compares with it."""
    fixed = None if map_file is None else maps.read_map(Path(map_file))
    other = reference.recorded()
    if not other.steps:
        raise TruelineError(
            f"The reference {other.info.name} never trained: there is nothing to compare with. See what it printed above."
        )
    mine = script or _script_of(run)
    reasons = [reason for each in (run, other) if (reason := why_not_aligned(each)) is not None]
    if not reasons and reference.script is not None and not is_ready(other):
        with Progress(
            [], other.directory / ALIGNED_FOLDER, "Running the reference without dropout, twice (Ctrl-C leaves it out)"
        ):
            record_reference(other, reference.script.command)
    if not reasons and mine is not None and is_ready(other):
        with Progress([], run.directory / ALIGNED_FOLDER, "Running the script from the reference's weights, with its batches"):
            record_mine(run, mine.command, other, fixed)
    aligned = aligned_runs(run, other)
    shown = (seen(run), seen(other)) if aligned is None else (aligned.mine, aligned.reference)
    if write_map is not None:
        maps.write_map(parameters_of(*shown, fixed), Path(write_map))
    why = why_it_failed(run, other) or (f"Nothing was run again: {'; '.join(reasons)}." if reasons else None)
    return other.info.name, compare_runs(seen(run), seen(other), aligned, fixed, why)
