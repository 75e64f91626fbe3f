"""The script once more in PyNative mode, recorded into the run's folder `closer`, to see what compiled graphs hide."""

from __future__ import annotations

from trueline.rerun.kept_files import can_be_kept, written_files
from trueline.rerun.once_more import record_once_more
from trueline.store import CLOSER_FOLDER, Run

# PyNative mode may take many times as long: as long as the run itself took, within these bounds.
_SHORTEST, _LONGEST = 60.0, 600.0
# For what comes before the first step, and for the evaluation that the time may end in.
_STARTING = 60.0


def why_no_closer_look(run: Run) -> str | None:
    """Why the script need not, or cannot, be run in PyNative mode; None when it is worth it."""
    if not run.unseen:
        return "nothing is hidden inside of compiled graphs"
    if not run.steps or run.info.recorder_error or run.info.status in {"interrupted", "killed"}:
        return "the first run did not train to its end"
    if run.info.world_size > 1:
        return "it has several ranks"
    if not can_be_kept(written_files(run)):
        return "the script writes more files than can be put aside meanwhile"
    return None


def look_closer(run: Run, command: list[str]) -> None:
    """Record the command of `trueline run` in PyNative mode, up to its end or until the time is up."""
    seconds = min(max(_SHORTEST, run.info.seconds or 0.0), _LONGEST)
    options = ["--pynative", "--seconds", f"{seconds:.0f}"]
    record_once_more(run, CLOSER_FOLDER, options, command, limit=2 * seconds + _STARTING)
