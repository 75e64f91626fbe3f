"""A second recording of the same command, made for what it shows, into a folder of the first one's run directory."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

from trueline.rerun.kept_files import put_away, written_files
from trueline.store import Run


def record_once_more(run: Run, folder: str, options: list[str], command: list[str], *, limit: float) -> None:
    """Run `trueline run` with these options for at most so many seconds.

    Its output is discarded, it reads nothing, and what it writes is taken back.
    """
    directory = run.directory.absolute()
    environment = os.environ | {"TRUELINE_RUNS": str(directory)}
    with put_away(written_files(run), directory / "kept", directory / folder):
        process = subprocess.Popen(  # noqa: S603 - running the user's script is the job
            [sys.executable, "-m", "trueline", "run", "--name", folder, *options, *command],
            env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        try:
            process.wait(limit)
        except (subprocess.TimeoutExpired, KeyboardInterrupt):
            _end(process)
        finally:
            # Workers of loaders and other processes that the script left behind.
            _signal_all(process.pid, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    _signal_all(process.pid, signal.SIGTERM)
    try:
        process.wait(5.0)
    except subprocess.TimeoutExpired:
        _signal_all(process.pid, signal.SIGKILL)
        process.wait()


def _signal_all(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
