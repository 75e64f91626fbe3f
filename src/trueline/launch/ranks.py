"""Recording a launch over several ranks from one command: the launcher runs here, and every rank records itself.

The launcher is no rank. It makes the run directory, so that all ranks find the same one, and has the last word on how the
run ended: a rank that the launcher stops because another one failed cannot tell why.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import msgspec

from trueline.launch.recording import describe, new_info
from trueline.launch.script import Program, load_module
from trueline.model import RunInfo
from trueline.store import begin_run, read_info, write_info

# The command that starts ranks, and the module that it runs.
LAUNCHERS = {"torchrun": "torch.distributed.run", "msrun": "mindspore.parallel.cluster.run"}


def launcher_of(target: str, *, as_module: bool) -> str | None:
    """The command among `LAUNCHERS` that a script or module is; None for one that starts no ranks."""
    if as_module:
        return next((command for command, module in LAUNCHERS.items() if module == target), None)
    name = Path(target).name
    return name if name in LAUNCHERS else None


def launched_stem(launcher: str, arguments: list[str]) -> str:
    """What the run of a launch is named after: its training script, as far as that can be seen."""
    script = next((word for word in arguments if word.endswith(".py")), None)
    return launcher if script is None else Path(script).stem


def unrecorded(launcher: str, arguments: list[str]) -> Program:
    """The launcher as it starts ranks without Trueline."""
    return load_module(LAUNCHERS[launcher], _without_separator(arguments))


def _without_separator(arguments: list[str]) -> list[str]:
    return arguments[1:] if arguments[:1] == ["--"] else arguments


class RanksRecording:
    """The run of a launch. Has the methods of a Recording that `trueline run` uses."""

    def __init__(self, launcher: str, arguments: list[str], command: list[str], *, name: str | None, options: list[str]) -> None:
        self._launcher = launcher
        self._arguments = _without_separator(arguments)
        self._options = options
        stem = launched_stem(launcher, self._arguments)
        begun = begin_run(stem, name)
        self.directory = begun.directory
        self._state = begun.state
        self._info: RunInfo = new_info(begun, command, script=stem)
        describe(begun, self._info)

    def program(self) -> Program:
        """The launcher, told to start the recorder with the training script."""
        if self._launcher == "msrun":
            from trueline.adapters.mindspore.msrun import with_recorder
        else:
            from trueline.adapters.pytorch.torchrun import with_recorder

        recorder = ["trueline", "run", "--name", self.directory.name, *self._options]
        return load_module(LAUNCHERS[self._launcher], with_recorder(self._arguments, recorder))

    def start(self) -> None:
        """The ranks record."""

    def stop(self, *, status: str = "finished", exit_code: int | None = None, error: str | None = None) -> None:
        """Add what the launcher knows to what rank 0 wrote of itself, if it came that far."""
        with suppress(OSError):
            self._state.tell(status=status, exit_code=exit_code, error=error)
        info = read_info(self.directory)
        described = info.pid != os.getpid()
        if described and (status == "finished" or info.status in {"failed", "interrupted"}):
            return
        words = None if error is None else error.splitlines()[0]
        with suppress(OSError):
            write_info(
                self.directory, msgspec.structs.replace(info, status=status, exit_code=exit_code, error=info.error or words)
            )
