"""How a run ended, and what is missing of one that is not whole."""

from __future__ import annotations

from trueline.model import RunInfo
from trueline.store import Run


def how_it_ended(info: RunInfo) -> str | None:
    """A sentence on a script that did not end well; None for one that did."""
    if info.status == "failed":
        code = "" if info.exit_code is None else f" with exit code {info.exit_code}"
        return f"The script failed{code}{f': {info.error}' if info.error else '.'}"
    if info.status == "interrupted":
        return "The script was interrupted."
    if info.status == "killed":
        return "The script was killed before it could end."
    if info.status == "running":
        return f"The script is still running (process {info.pid})."
    if info.exit_code:
        return f"The script ended with exit code {info.exit_code}."
    return None


def why_incomplete(run: Run) -> str | None:
    """Why the record does not hold the whole training; None where it does."""
    if run.info.recorder_error:
        return f"The recorder stopped before the script ended: {run.info.recorder_error}"
    ended = how_it_ended(run.info)
    if ended is not None:
        return ended
    return None if run.meta.get("ended") == "true" else "The end of the record is missing."
