"""`trueline` commands in processes that have imported PyTorch already: each command is a fork of one process that waits.

Most of what a case costs is the import. Started as a script, this file is the process that waits: it reads one order a line,
forks, and the fork becomes `python -m trueline` with the arguments, the folder and the environment of the order.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


class WarmProcess:
    """Waits until its first command is asked for, and ends with the process that made it."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def trueline(
        self, *arguments: str, cwd: Path, environment: dict[str, str], longest: float
    ) -> subprocess.CompletedProcess[str]:
        """As `subprocess.run` of `python -m trueline`, with output and errors captured."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        with tempfile.TemporaryDirectory() as folder:
            out, err = Path(folder, "out"), Path(folder, "err")
            order = {
                "arguments": arguments, "folder": str(cwd), "environment": environment, "out": str(out), "err": str(err),
            }  # fmt: skip
            process.stdin.write(json.dumps(order).encode() + b"\n")
            process.stdin.flush()
            if not select.select([process.stdout], [], [], longest)[0]:
                self.end()
                raise subprocess.TimeoutExpired(list(arguments), longest)
            answer = process.stdout.readline()
            assert answer, "the process that waits has ended"
            return subprocess.CompletedProcess(list(arguments), int(answer), out.read_text(), err.read_text())

    def end(self) -> None:
        """Its commands end with it."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                env=os.environ | {"OMP_NUM_THREADS": "1"},
            )  # fmt: skip
        return self._process


def _next_order(answers: int) -> dict[str, Any]:
    """Returns in a fork that is to carry out the order, and never in the process that waits, but when that is over."""
    while line := sys.stdin.buffer.readline():
        order: dict[str, Any] = json.loads(line)
        child = os.fork()
        if not child:
            return order
        _, status = os.waitpid(child, 0)
        os.write(answers, b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _become(order: dict[str, Any]) -> None:
    os.chdir(order["folder"])
    os.environ.clear()
    os.environ.update(order["environment"])
    for stream, path in enumerate((os.devnull, order["out"], order["err"])):
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        os.dup2(file, stream)
        os.close(file)
    sys.stdin = open(0, encoding="utf-8")  # noqa: SIM115 - what this process read its orders with holds more of them
    sys.argv[:] = ["trueline", *order["arguments"]]
    sys.path[0] = order["folder"]


def _main() -> None:
    # Numbers of exit codes go where nothing that is imported prints.
    answers = os.dup(1)
    os.dup2(2, 1)
    sys.path[0] = ""
    import torch  # noqa: F401 - imported for the forks

    import trueline.cli.run  # noqa: F401
    from trueline.cli import main

    order = _next_order(answers)
    os.close(answers)
    _become(order)
    main()


if __name__ == "__main__":
    _main()
