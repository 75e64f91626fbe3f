"""What becomes of a watch that fails: it is taken off, named on stderr and in the record, its traceback kept."""

from __future__ import annotations

import traceback
from contextlib import suppress
from pathlib import Path

import msgspec

from trueline.model import FailedWatch
from trueline.model.parts import in_words
from trueline.recorder.watches import parts_of

_MOST_TRACEBACKS = 20
_LONGEST_TRACEBACK = 8_000
_LONGEST_ERROR = 300


class FailedWatches:
    """Those of one process. `off` holds their names."""

    def __init__(self, file: Path | None) -> None:
        self.off: set[str] = set()
        self._failed: list[FailedWatch] = []
        self._file = file
        self._tracebacks = 0

    def add(self, watch: str, step: int, problem: Exception) -> str:
        """Keep it; gives what is to be said once: what is missing from now on."""
        self.off.add(watch)
        found = FailedWatch(watch, parts_of(watch), step, _in_a_line(problem))
        self._failed.append(found)
        self.keep_traceback(watch, step, problem)
        return (
            f"the watch {watch} failed at step {step} ({found.error}) and is off. Not complete from now on: "
            f"{in_words(found.parts)}. Items that need it will not be checked; everything else is recorded. "
            "The traceback: trueline doctor --last"
        )

    def row(self) -> tuple[str, str]:
        """All so far, for the table `meta`."""
        return "failed_watches", msgspec.json.encode(self._failed).decode()

    def keep_traceback(self, what: str, step: int, problem: BaseException) -> None:
        if self._file is None or self._tracebacks >= _MOST_TRACEBACKS:
            return
        self._tracebacks += 1
        text = "".join(traceback.format_exception(problem))
        if len(text) > _LONGEST_TRACEBACK:
            text = f"{text[: _LONGEST_TRACEBACK // 2]}\n[…]\n{text[-_LONGEST_TRACEBACK // 2 :]}"
        # Where the disk is full there is none.
        with suppress(OSError), self._file.open("ab") as file:
            file.write(f"{what}, at step {step}\n{text}\n".encode(errors="replace"))


def _in_a_line(problem: Exception) -> str:
    """The exception's own words may be of any length, and asking for them may fail too."""
    try:
        text = " ".join(f"{type(problem).__name__}: {problem}".split())
    except Exception:  # noqa: BLE001 - a failure must not fail
        text = type(problem).__name__
    # File names need not be text.
    return text.encode(errors="replace").decode()[:_LONGEST_ERROR]
