"""Numbers for runs, in the order in which they start: clocks are set back, and two runs may start at once.

`.sequence` in the folder of runs holds the last number. Whoever takes the next one keeps the others waiting meanwhile.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Callable
from pathlib import Path

SEQUENCE_FILE = ".sequence"
_WIDTH = 20
# Nobody needs longer, unless it was stopped in the middle: a training is not kept waiting for that.
_PATIENCE_SECONDS = 2.0
_POLL_SECONDS = 0.005


def next_number(folder: Path, largest: Callable[[], int]) -> int:
    """A number that no run of this folder has. `largest` gives that of all its runs, should the file be gone."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    descriptor = os.open(folder / SEQUENCE_FILE, flags, 0o644)
    try:
        _wait_for_turn(descriptor)
        last = os.pread(descriptor, _WIDTH, 0).strip()
        number = 1 + (int(last) if last.isdigit() else largest())
        os.pwrite(descriptor, f"{number:>{_WIDTH - 1}}\n".encode(), 0)
        return number
    finally:
        os.close(descriptor)


def _wait_for_turn(descriptor: int) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(_POLL_SECONDS)
        except OSError:
            # A file system without locks.
            return
        else:
            return
