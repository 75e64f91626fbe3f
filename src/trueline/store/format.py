"""The layout of a run directory: `run.json`, the script as `script.py`, one `rank<N>.sqlite` per rank (`rank<N>.journal` while it
is made), `tensors/`, `feed/`, and how recording goes in `ending` and `rank<N>.ending` (state.py)."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import msgspec

from trueline import limits
from trueline.errors import FormatTooNew, RunNotFound
from trueline.model import RunInfo
from trueline.reading import read_whole, reading
from trueline.store.state import is_alive, is_over, read_state, state_files

FORMAT = 2
RUN_FILE = "run.json"
TENSOR_FOLDER = "tensors"
# A second recording of the same script's first steps, and the manifest of files that the user expects.
RERUN_FOLDER = "rerun"
# A second recording in a mode of the framework that shows more.
CLOSER_FOLDER = "closer"
# Files that the script changed, as they were before (recorder/kept_files.py).
BEFORE_FOLDER = "before"
# Recordings that start alike on both sides of a comparison, and the reference's once more with noise.
ALIGNED_FOLDER = "aligned"
PERTURBED_FOLDER = "perturbed"
# With the number of the rank: files that a framework writes while it is recorded. Gone when they have been read.
SCRATCH_FOLDER = "scratch"
MANIFEST_FILE = "manifest.json"
# Tracebacks of watches that failed.
FAILURES_FILE = "failures.txt"
# The script as it was when it was recorded.
SCRIPT_FILE = "script.py"
SCHEMA = (Path(__file__).parent / "schema.sql").read_text(encoding="utf-8")


def database_file(directory: Path, rank: int) -> Path:
    return directory / f"rank{rank}.sqlite"


def journal_file(directory: Path, rank: int) -> Path:
    return directory / f"rank{rank}.journal"


def recorded_ranks(directory: Path) -> list[int]:
    """The ranks that left a record, in order."""
    files = [path for pattern in ("rank*.sqlite", "rank*.journal") for path in directory.glob(pattern) if path.is_file()]
    numbers = {path.stem.removeprefix("rank") for path in files}
    return sorted(int(number) for number in numbers if number.isdecimal() and str(int(number)) == number)


def write_info(directory: Path, info: RunInfo) -> None:
    # Paths and arguments need not be text; what is stored is.
    text = json.dumps(msgspec.to_builtins(info), ensure_ascii=False, indent=2)
    replace_file(directory / RUN_FILE, text.encode(errors="replace") + b"\n")


def replace_file(path: Path, content: bytes) -> None:
    """Write a file of a run in one move: a reader never sees half of it. A link that stands there is replaced and not followed:
    a run from elsewhere does not choose where something is written."""
    partial = path.with_name(f"{path.name}.{os.getpid()}")
    # Process numbers come again.
    partial.unlink(missing_ok=True)
    try:
        with partial.open("xb") as file:
            file.write(content)
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def read_info(directory: Path) -> RunInfo:
    path = directory / RUN_FILE
    if not path.is_file():
        raise RunNotFound(
            f"{RUN_FILE} is missing in {directory}: this is not a Trueline run directory. List the runs with: trueline runs"
        )
    with reading(path, "Record the run again.", RunNotFound):
        content = read_whole(path, limits.RUN_DESCRIPTION_BYTES)
        format_found = msgspec.json.decode(content, type=_Format).format
        if isinstance(format_found, int) and format_found > FORMAT:
            raise FormatTooNew(
                f"{directory} was written in run format {format_found}; this Trueline reads up to {FORMAT}. Upgrade Trueline."
            )
        if isinstance(format_found, int) and format_found < FORMAT:
            raise RunNotFound(
                f"{directory} was written in run format {format_found}; this Trueline reads {FORMAT}. Record the run again."
            )
        info = msgspec.json.decode(content, type=RunInfo)
        datetime.fromisoformat(info.started)
    _add_states(directory, info)
    return info


class _Format(msgspec.Struct):
    format: int | None = None


def _add_states(directory: Path, info: RunInfo) -> None:
    """What `run.json` does not tell: that of a process that was killed, or whose disk was full when it ended."""
    states = {path: read_state(path) for path in state_files(directory)}
    if info.status == "running":
        path, main = next(iter(states.items()), (None, None))
        if main is not None and main.status != "running":
            info.status, info.exit_code, info.error = main.status, main.exit_code, main.error
            info.ended, info.seconds = main.ended, main.seconds
        elif is_over(path, main) if path is not None else not is_alive(info.pid):
            info.status = "killed"
    if info.recorder_error is None:
        failures = (state.recorder_error for state in states.values() if state is not None)
        info.recorder_error = next(filter(None, failures), None)
