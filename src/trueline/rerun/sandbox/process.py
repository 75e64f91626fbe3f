"""The process that becomes a sandbox, seen from the one that gives it its orders; what it does itself: inside.py."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any

_POLL_SECONDS = 0.5
Sandbox = subprocess.Popen[bytes]


@contextmanager
def started(orders: dict[str, Any], streams: Sequence[int] = ()) -> Iterator[Sandbox]:
    """Start one with these orders. However this ends, nothing of it is left: its processes end with their first one.

    `streams`: what the command reads from and writes to, in the session of this process; hidden from everybody where there
    are none.
    """
    # By path, so that nothing of Trueline's is imported there.
    folder = str(Path(__file__).resolve().parents[1])
    code = f"import sys; sys.path.insert(0, {folder!r}); from sandbox.inside import main; main()"
    process = subprocess.Popen(  # noqa: S603 - running the user's script is the job
        [sys.executable, "-I", "-B", "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=not streams, pass_fds=streams,
    )  # fmt: skip
    assert process.stdin is not None  # noqa: S101 - asked for above
    try:
        orders = {"parent": os.getpid(), "streams": list(streams), "inherited": _inherited(), **orders}
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(orders).encode("utf-8", "surrogateescape") + b"\n")
            process.stdin.flush()
        yield process
    finally:
        with suppress(ProcessLookupError, PermissionError):
            if streams:
                process.kill()
            else:
                os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _inherited() -> list[int]:
    """Descriptors that this process was given beside its standard streams, as a script of it would be."""
    found = []
    with suppress(OSError):
        for number in sorted(map(int, os.listdir("/proc/self/fd"))):
            with suppress(OSError):
                if number > 2 and os.get_inheritable(number):
                    found.append(number)
    return found


def refusal(process: Sandbox) -> str | None:
    """Why nothing ran, once it has ended; None when something did."""
    assert process.stdout is not None  # noqa: S101 - asked for in `started`
    assert process.stdin is not None  # noqa: S101
    news: dict[str, Any] = {}
    for line in process.stdout.read().splitlines():
        with suppress(ValueError):
            news |= json.loads(line)
    process.stdout.close()
    with suppress(BrokenPipeError):
        process.stdin.close()
    if "refused" in news:
        return f"it cannot be run in a sandbox: {news['refused']}"
    return None if "started" in news else "it cannot be run in a sandbox: that ended before it had begun"


def waited(process: Sandbox, limit: float, progress: Callable[[], None]) -> bool:
    """Whether it ended by itself within the limit, and was not called off with Ctrl-C."""
    until = monotonic() + limit
    try:
        while monotonic() < until:
            with suppress(subprocess.TimeoutExpired):
                process.wait(min(_POLL_SECONDS, max(until - monotonic(), 0.0)))
                return True
            progress()
    except KeyboardInterrupt:
        return False
    return False
