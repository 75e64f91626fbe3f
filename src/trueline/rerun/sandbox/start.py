"""Starting a script in a sandbox: the only place that runs one a second time.

What the second run writes, sends and starts stays in a sandbox: a view of the file systems of its own
(view.py), in which the files that the first run changed are as they were before it (undo.py), a network
without a way out, and processes that end with the one that asked for them. Only the record comes out.
"""

from __future__ import annotations

import os
import shutil
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from functools import cache
from pathlib import Path
from tempfile import gettempdir
from time import monotonic
from typing import Any

import msgspec

from trueline.launch.place import RERUN_VARIABLE
from trueline.rerun.before import UNCHANGED, Before, before
from trueline.rerun.sandbox.process import Sandbox, refusal, started, waited
from trueline.store import Run
from trueline.store.runs import RUNS_VARIABLE
from trueline.store.staging import staging_in

_SHARE_OF_MEMORY = 0.5
_LEAST_ROOM = 64 << 20
# Programs that report trainings to a server are told to keep it to themselves.
_TRACKERS_OFFLINE = {
    "WANDB_MODE": "offline",
    "MLFLOW_TRACKING_URI": "file:/tmp/mlflow",
    "COMET_START_ONLINE": "0",
    "COMET_MODE": "offline",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "offline",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}  # fmt: skip
# Without network, what was downloaded before is taken at once instead of after a time-out.
_HUBS_OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


class Way(StrEnum):
    """How scripts may be run again."""

    SANDBOX = "sandbox"
    NETWORK = "network"
    UNSAFE = "unsafe"
    NO = "no"


class Rerun(msgspec.Struct, frozen=True):
    """How a second run went. `refused`: why there was none. `seconds`: how long it took; `cut_off`: the limit ended it. `doubt`:
    what it did not find as the first run had found it."""

    refused: str | None = None
    seconds: float = 0.0
    cut_off: bool = False
    doubt: str | None = None


def record_again(
    run: Run,
    folder: str,
    options: list[str],
    command: list[str],
    *,
    limit: float,
    way: Way,
    files_before: Run | None = None,
    progress: Callable[[Path], None] | None = None,
) -> Rerun:
    """Record `command` again with these options of `trueline run`, into `folder` of the run's directory.

    It runs for at most `limit` seconds; its output is discarded, and it reads nothing. It finds the files as they were before
    the run, or before another one (`files_before`). `progress` is told now and then where the record is being made.
    """
    if way is Way.NO:
        return Rerun("reruns are switched off (--no-rerun)")
    if way is not Way.UNSAFE and (reason := why_impossible()) is not None:
        return Rerun(reason)
    if way is not Way.UNSAFE and (reason := _why_not_as_before(files_before or run)) is not None:
        return Rerun(reason)
    begun = monotonic()
    with staging_in(run.directory) as staging:
        words = [sys.executable, "-m", "trueline", "run", "--name", folder, *options, *command]
        found = before(files_before or run)
        orders = _orders(words, staging / "shared", _TRACKERS_OFFLINE | (_HUBS_OFFLINE if way is Way.SANDBOX else {}))
        orders |= {"unsafe": True} if way is Way.UNSAFE else _view_again(run, found, way, staging)
        place = staging / "shared" / folder
        with started(orders) as process:
            cut_off = not waited(process, limit, lambda: progress(place) if progress is not None else None)
        if (reason := refusal(process)) is not None:
            return Rerun(reason)
        _take_out(place, run.directory / folder)
    return Rerun(None, monotonic() - begun, cut_off, _doubt(run, found, way))


@contextmanager
def started_aside(command: list[str], runs: Path, streams: tuple[int, int, int], beside: Run | None) -> Iterator[Sandbox]:
    """Start a command, which records into the folder `runs`, with these streams and with network.

    For a script that runs for the first time `beside` another: it finds the files as that one found them, and does not write
    over its results.
    """
    runs = runs.absolute()
    found = UNCHANGED if beside is None else before(beside)
    with staging_in(runs) as staging:
        # It may write as much as it wants.
        orders = _orders(command, runs, {}) | _view(found, staging, shared=runs, on_disk=True) | {"network": True}
        given = [_copy_of(stream) for stream in streams]
        try:
            with started(orders, given) as process:
                yield process
        finally:
            for stream in given:
                os.close(stream)


@cache
def why_impossible() -> str | None:
    """Why nothing can run in a sandbox on this machine; None where it can. Found out by trying."""
    if sys.platform != "linux":
        return f"there is no sandbox for a second run on {sys.platform} (--rerun=unsafe does without)"
    with started({"probe": True, "network": False}) as process:
        process.wait()
    reason = refusal(process)
    return None if reason is None else f"{reason} (--rerun=unsafe runs it without a sandbox)"


def _why_not_as_before(run: Run) -> str | None:
    """Why it is not known what the files were before a run; None where it is."""
    for failed in run.failed_anywhere:
        if "before" in failed.parts:
            return f"{failed.in_words}: what files were before the first run is not known"
    return None


def _doubt(run: Run, found: Before, way: Way) -> str | None:
    if way is Way.UNSAFE:
        return f"{found.written[0]} is as the first run left it (--rerun=unsafe)" if found.written else None
    if found.doubt is not None or way is not Way.SANDBOX:
        return found.doubt
    used = run.events_of("connected")
    if not used:
        return None
    where = f" ({used[0].location})" if used[0].location is not None else ""
    return f"the script connects to {used[0].detail.get('address')}{where}, and a second run has no network (--rerun=network)"


def _take_out(made: Path, target: Path) -> None:
    """The record comes to its place, where one of an earlier time may be."""
    if made.is_dir():
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target, ignore_errors=True)
        else:
            target.unlink(missing_ok=True)
        made.rename(target)


def _orders(command: list[str], runs: Path, variables: dict[str, str]) -> dict[str, Any]:
    environment = os.environ | variables | {RUNS_VARIABLE: str(runs), RERUN_VARIABLE: "1"}
    return {"folder": str(Path.cwd()), "command": command, "environment": environment}


def _view(found: Before, staging: Path, *, shared: Path, on_disk: bool) -> dict[str, Any]:
    """The files as they were before a run, what is written kept in memory or `on_disk`: see inside.py."""
    layers = staging / "layers"
    if on_disk:
        layers.mkdir()
    return {
        "stage": str(staging / "stage"),
        "layers": str(layers) if on_disk else None,
        "size": _room(),
        "shared": str(shared),
        "kept": None if found.folder is None else str(found.folder),
        "hidden": list(found.hidden),
        "written": list(found.written),
        "needed": _needed_folders(found.written),
        "network": False,
        "addresses": [],
    }


def _view_again(run: Run, found: Before, way: Way, staging: Path) -> dict[str, Any]:
    view = _view(found, staging, shared=staging / "shared", on_disk=found.size > _room() // 2)
    addresses = _own_addresses() if run.info.world_size > 1 else []
    return view | {"network": way is Way.NETWORK, "addresses": addresses}


def _needed_folders(written: tuple[str, ...]) -> list[str]:
    """Where the script writes, or is likely to."""
    folders = {os.path.realpath(folder) for folder in (Path.cwd(), gettempdir())}
    for path in written:
        folder = Path(path).parent
        while not folder.is_dir():
            folder = folder.parent
        folders.add(os.path.realpath(folder))
    return sorted(folders)


def _copy_of(stream: int) -> int:
    # Closed from the start: the descriptor may be somebody else's by now, and what is written there goes nowhere.
    if (sys.__stdin__, sys.__stdout__, sys.__stderr__)[stream] is None:
        return os.open(os.devnull, os.O_RDWR)
    return os.dup(stream)


def _room() -> int:
    return max(_LEAST_ROOM, int(_SHARE_OF_MEMORY * _free_memory()))


def _free_memory() -> int:
    with suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable:"))
    return 4 * _LEAST_ROOM


def _own_addresses() -> list[str]:
    """What this machine's name stands for: ranks find each other by it."""
    with suppress(OSError):
        address = socket.gethostbyname(socket.gethostname())
        return [] if address.startswith("127.") else [address]
    return []
