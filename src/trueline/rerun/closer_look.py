"""The script once more in PyNative mode, recorded into the run's folder `closer`, to see what compiled graphs hide."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trueline.rerun.sandbox.start import Rerun, Way, record_again
from trueline.rerun.terms import STARTING, Terms
from trueline.store import CLOSER_FOLDER, Run

# PyNative mode may take many times as long: the first steps of it, in as long as the run itself took.
USUAL_SHARE = 1.0


def why_no_closer_look(run: Run, terms: Terms) -> str | None:
    """Why the script need not, or cannot, be run in PyNative mode; None when it is worth it."""
    if not run.unseen:
        return "nothing is hidden inside of compiled graphs"
    if terms.way is Way.NO:
        return "reruns are switched off (--no-rerun)"
    if not run.steps or run.info.recorder_error or run.info.status in {"interrupted", "killed"}:
        return "the first run did not train to its end"
    if run.info.world_size > 1:
        return "it has several ranks"
    return None


def look_closer(run: Run, command: list[str], terms: Terms, progress: Callable[[Path], None] | None = None) -> Rerun:
    """Record the command of `trueline run` in PyNative mode, up to its end or until the time is up."""
    seconds = terms.seconds(run, USUAL_SHARE)
    options = ["--pynative", "--seconds", f"{seconds:.0f}"]
    # Beyond it, the evaluation that the time may end in.
    limit = 2 * seconds + STARTING
    return record_again(run, CLOSER_FOLDER, options, command, limit=limit, way=terms.way, progress=progress)
