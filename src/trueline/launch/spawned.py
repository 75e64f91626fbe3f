"""Ranks that a script starts itself with `torch.multiprocessing.spawn`: each of them records itself into the script's run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueline.launch.place import is_rerun
from trueline.recorder.patches import Patches

if TYPE_CHECKING:
    from trueline.launch.recording import Recording

_MODULE = "torch.multiprocessing.spawn"


def watch_spawn(patches: Patches, recording: Recording) -> None:
    """Hand the run over to the processes that are spawned, unless the script has trained before it starts them."""
    # The attribute of that name in its package is the function `spawn`; the module is found only here.
    module = sys.modules.get(_MODULE)
    if module is None:
        return
    original: Callable[..., Any] = module.__dict__["start_processes"]

    def start_processes(
        fn: Any, args: Any = (), nprocs: int = 1, join: bool = True, daemon: bool = False,  # noqa: FBT001, FBT002 - as torch has it
        start_method: str = "spawn", **options: Any,
    ) -> Any:  # fmt: skip
        if start_method == "spawn" and join and recording.hand_over(nprocs):
            fn = RecordedWorker(fn, recording.directory, recording.info.command, recording.budget, nprocs)
        return original(fn, args, nprocs, join, daemon, start_method, **options)

    patches.replace(module, "start_processes", start_processes)


class RecordedWorker:
    """What a spawned process runs in the place of the script's function: that function, recorded as one rank."""

    def __init__(self, function: Callable[..., Any], directory: Path, command: list[str], budget: float, ranks: int) -> None:
        self._function = function
        self._directory = directory.absolute()
        self._command = command
        self._budget = budget
        self._ranks = ranks

    def __call__(self, rank: int, *args: Any) -> Any:
        from trueline.launch.recording import Recording, unless_impossible

        recording = unless_impossible(
            lambda: Recording(
                "",
                self._command,
                budget=self._budget,
                rank=rank,
                ranks=self._ranks,
                directory=self._directory,
                keep_files=not is_rerun(),
            )
        )
        if recording is None:
            return self._function(rank, *args)
        recording.start()
        try:
            result = self._function(rank, *args)
        except BaseException as problem:
            recording.stop(status="failed", error=f"{type(problem).__name__}: {problem}")
            raise
        recording.stop()
        return result
