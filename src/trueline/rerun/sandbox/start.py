"""Starting a script a second time: the only place that does.

What the second run writes, sends and starts stays in a sandbox: a view of the file systems of its own
(view.py), in which the files that the first run changed are as they were before it (undo.py), a network
without a way out, and processes that end with the one that asked for them. Only the record comes out.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
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
from trueline.rerun.before import Before, before
from trueline.store import Run
from trueline.store.runs import RUNS_VARIABLE

# One folder of a run while something runs again for it: the number of the process that asked is its ending.
STAGING = "again-"
_SHARE_OF_MEMORY = 0.5
_LEAST_ROOM = 64 << 20
_POLL_SECONDS = 0.5
# Programs that report trainings to a server are told to keep it to themselves.
_OFFLINE = {
    "WANDB_MODE": "offline",
    "MLFLOW_TRACKING_URI": "file:/tmp/mlflow",
    "COMET_START_ONLINE": "0",
    "COMET_MODE": "offline",
    "NEPTUNE_MODE": "offline",
    "CLEARML_OFFLINE_MODE": "1",
    "SWANLAB_MODE": "offline",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}  # fmt: skip


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
    progress: Callable[[Path], None] | None = None,
) -> Rerun:
    """Record `command` again with these options of `trueline run`, into `folder` of the run's directory.

    It runs for at most `limit` seconds; its output is discarded, and it reads nothing. `progress` is told now and then where
    the record is being made.
    """
    if way is Way.NO:
        return Rerun("reruns are switched off (--no-rerun)")
    if way is not Way.UNSAFE and (reason := why_impossible()) is not None:
        return Rerun(reason)
    started = monotonic()
    with _staging(run.directory) as staging:
        words = [sys.executable, "-m", "trueline", "run", "--name", folder, *options, *command]
        environment = os.environ | _OFFLINE | {RUNS_VARIABLE: str(staging / "shared"), RERUN_VARIABLE: "1"}
        orders: dict[str, Any] = {"parent": os.getpid(), "folder": str(Path.cwd()), "command": words}
        orders["environment"] = environment
        found = before(run)
        orders |= {"unsafe": True} if way is Way.UNSAFE else _sandboxed(run, found, way, staging)
        process = _start_inside()
        _send(process, orders)
        place = staging / "shared" / folder
        with _bound(process):
            cut_off = not _waited(process, limit, lambda: progress(place) if progress is not None else None)
        if (reason := _refusal(process)) is not None:
            return Rerun(reason)
        _take_out(place, run.directory / folder)
    return Rerun(None, monotonic() - started, cut_off, None if way is Way.UNSAFE else found.doubt)


@cache
def why_impossible() -> str | None:
    """Why nothing can run in a sandbox on this machine; None where it can. Found out by trying."""
    if sys.platform != "linux":
        return f"there is no sandbox for a second run on {sys.platform} (--rerun=unsafe does without)"
    process = _start_inside()
    _send(process, {"parent": os.getpid(), "probe": True, "network": False})
    process.wait()
    reason = _refusal(process)
    return None if reason is None else f"{reason} (--rerun=unsafe runs it without a sandbox)"


@contextmanager
def _staging(directory: Path) -> Iterator[Path]:
    staging = directory.absolute() / f"{STAGING}{os.getpid()}"
    remove_staging(staging)
    for name in ("shared", "stage"):
        (staging / name).mkdir(parents=True)
    try:
        yield staging
    finally:
        remove_staging(staging)


def remove_staging(staging: Path) -> None:
    """The work folder of an overlay lets not even its owner look into it."""
    for folder in staging.glob("layers/*/work/work"):
        with suppress(OSError):
            folder.chmod(0o700)
    shutil.rmtree(staging, ignore_errors=True)


def _take_out(made: Path, target: Path) -> None:
    """The record comes to its place, where one of an earlier time may be."""
    if made.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        made.rename(target)


def _sandboxed(run: Run, found: Before, way: Way, staging: Path) -> dict[str, Any]:
    room = max(_LEAST_ROOM, int(_SHARE_OF_MEMORY * _free_memory()))
    on_disk = found.size > room // 2
    if on_disk:
        (staging / "layers").mkdir()
    return {
        "stage": str(staging / "stage"),
        "layers": str(staging / "layers") if on_disk else None,
        "size": room,
        "shared": str(staging / "shared"),
        "kept": None if found.folder is None else str(found.folder),
        "hidden": list(found.hidden),
        "written": list(found.written),
        "needed": _needed_folders(found.written),
        "network": way is Way.NETWORK,
        "addresses": _own_addresses() if run.info.world_size > 1 else [],
    }


def _needed_folders(written: tuple[str, ...]) -> list[str]:
    """Where the script writes, or is likely to."""
    folders = {os.path.realpath(folder) for folder in (Path.cwd(), gettempdir())}
    for path in written:
        folder = Path(path).parent
        while not folder.is_dir():
            folder = folder.parent
        folders.add(os.path.realpath(folder))
    return sorted(folders)


def _start_inside() -> subprocess.Popen[bytes]:
    """By path, so that nothing of Trueline's is imported there; see inside.py."""
    folder = str(Path(__file__).resolve().parents[1])
    code = f"import sys; sys.path.insert(0, {folder!r}); from sandbox.inside import main; main()"
    return subprocess.Popen(  # noqa: S603 - running the user's script is the job
        [sys.executable, "-I", "-B", "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True,
    )  # fmt: skip


def _send(process: subprocess.Popen[bytes], orders: dict[str, Any]) -> None:
    assert process.stdin is not None  # noqa: S101 - asked for above
    with suppress(BrokenPipeError):
        process.stdin.write(json.dumps(orders).encode("utf-8", "surrogateescape") + b"\n")
        process.stdin.flush()


def _refusal(process: subprocess.Popen[bytes]) -> str | None:
    """What the sandbox says of itself once it has ended."""
    assert process.stdout is not None  # noqa: S101 - asked for above
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


def _waited(process: subprocess.Popen[bytes], limit: float, progress: Callable[[], None]) -> bool:
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


@contextmanager
def _bound(process: subprocess.Popen[bytes]) -> Iterator[None]:
    """However this ends, nothing that was started is left: the sandbox ends with its first process, others with their group."""
    try:
        yield
    finally:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
