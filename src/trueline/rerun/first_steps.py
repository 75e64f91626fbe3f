"""The first steps of a script once more, recorded into the run's folder `rerun`, to see whether they come out the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trueline.rerun.sandbox.start import Rerun, Way, record_again
from trueline.rerun.terms import Terms
from trueline.store import RERUN_FOLDER, Run

STEPS = 64
USUAL_SHARE = 1.0


def why_no_rerun(run: Run, terms: Terms) -> str | None:
    """Why a second run would show nothing, or cost too much; None when it is worth it."""
    if terms.way is Way.NO:
        return "reruns are switched off (--no-rerun)"
    if run.info.status != "finished" or not run.steps or run.info.recorder_error:
        return "the first run did not train to its end"
    if run.info.world_size > 1 and run.framework == "mindspore":
        return "ranks that msrun starts cannot be ended after the first steps"
    if not run.events_of("seed"):
        return "the script sets no seed"
    if _seconds_to_last(run) > terms.seconds(run, USUAL_SHARE):
        return (
            f"its first {STEPS} steps took {_seconds_to_last(run):.0f} s, and a second run may take "
            f"{terms.words(run, USUAL_SHARE)} (--rerun-time gives it more)"
        )
    return None


def rerun_first_steps(run: Run, command: list[str], terms: Terms, progress: Callable[[Path], None] | None = None) -> Rerun:
    """Run the command of `trueline run` again, up to as many steps as are compared."""
    steps = min(len(run.steps), STEPS)
    limit = terms.seconds(run, USUAL_SHARE)
    options = ["--steps", str(steps)]
    return record_again(run, RERUN_FOLDER, options, command, limit=limit, way=terms.way, progress=progress)


def _seconds_to_last(run: Run) -> float:
    """At most this long the first run took until the last step that is compared."""
    later = sum(step.seconds for step in run.steps[STEPS:])
    return max(0.0, (run.info.seconds or 0.0) - later)
