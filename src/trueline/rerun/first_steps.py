"""The first steps of a script once more, recorded into the run's folder `rerun`, to see whether they come out the same."""

from __future__ import annotations

from trueline.rerun.kept_files import can_be_kept, written_files
from trueline.rerun.once_more import record_once_more
from trueline.store import RERUN_FOLDER, Run

STEPS = 64
_LONGEST_FIRST = 120.0
_SHORTEST_LIMIT = 30.0
_TIMES_AS_LONG = 3.0


def why_no_rerun(run: Run) -> str | None:
    """Why a second run would show nothing, or cost too much; None when it is worth it."""
    if run.info.status != "finished" or not run.steps or run.info.recorder_error:
        return "the first run did not train to its end"
    if run.info.world_size > 1 and run.framework == "mindspore":
        return "ranks that msrun starts cannot be ended after the first steps"
    if not run.events_of("seed"):
        return "the script sets no seed"
    if _seconds_to_last(run) > _LONGEST_FIRST:
        return f"its first {STEPS} steps take more than {_LONGEST_FIRST:.0f} s"
    if not can_be_kept(written_files(run)):
        return "the script writes more files than can be put aside meanwhile"
    return None


def rerun_first_steps(run: Run, command: list[str]) -> None:
    """Run the command of `trueline run` again, up to as many steps as are compared."""
    steps = min(len(run.steps), STEPS)
    limit = max(_SHORTEST_LIMIT, _TIMES_AS_LONG * _seconds_to_last(run))
    record_once_more(run, RERUN_FOLDER, ["--steps", str(steps)], command, limit=limit)


def _seconds_to_last(run: Run) -> float:
    """At most this long the first run took until the last step that is compared."""
    later = sum(step.seconds for step in run.steps[STEPS:])
    return max(0.0, (run.info.seconds or 0.0) - later)
