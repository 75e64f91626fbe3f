"""How recording goes and how it ended, told by each process that records: `ending`, `rank<N>.ending`.

Such a file has its full size from the start and is overwritten in place, which takes no room: a disk that
is full keeps nothing new, but it cannot keep this news back. A lock on it is held for as long as the
process lives.
"""

from __future__ import annotations

import fcntl
import os
import re
from contextlib import suppress
from functools import cache
from pathlib import Path

import msgspec

from trueline.store.journal import beyond_standard_streams

STATE_FILE = "ending"
_NAME = re.compile(r"(rank\d+\.)?ending")
_BYTES = 1024
_LONGEST_WORDS = 300


def rank_state_file(rank: int) -> str:
    return f"rank{rank}.ending"


class State(msgspec.Struct, frozen=True):
    """`status` is that of RunInfo. `pid` means something on this `machine` only; `born` tells it from
    another process that was given the same number later."""

    pid: int
    machine: str = ""
    born: int | None = None
    status: str = "running"
    exit_code: int | None = None
    error: str | None = None
    ended: str | None = None
    seconds: float | None = None
    recorder_error: str | None = None


class StateFile:
    """The state of this process, in a file that must not be there yet."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._state = State(os.getpid(), machine(), born(os.getpid()))
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._descriptor = beyond_standard_streams(os.open(path, flags, 0o644))
        # Not every file system has locks; then only processes of this machine can be told to be over.
        with suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        try:
            os.ftruncate(self._descriptor, 0)
            _write(self._descriptor, _content(self._state))
        except OSError:
            self.discard()
            raise

    def tell(self, **changes: object) -> None:
        """Overwrite what the file says. By its name: a script may have closed all descriptors, ours among them, and been given
        the number for a file of its own."""
        self._state = msgspec.structs.replace(self._state, **changes)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            _write(descriptor, _content(self._state))
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Let go of the lock."""
        descriptor, self._descriptor = self._descriptor, -1
        with suppress(OSError):
            if descriptor >= 0 and os.path.samestat(os.fstat(descriptor), self.path.stat()):
                os.close(descriptor)

    def discard(self) -> None:
        """Take it back, with the file."""
        with suppress(OSError):
            os.close(self._descriptor)
        self._descriptor = -1
        self.path.unlink(missing_ok=True)


def _content(state: State) -> bytes:
    longest = _LONGEST_WORDS
    while True:
        words = {name: getattr(state, name) for name in ("error", "recorder_error")}
        cut = {name: None if text is None else _cut(text, longest) for name, text in words.items()}
        content = msgspec.json.encode(msgspec.structs.replace(state, **cut))
        if len(content) < _BYTES:
            return content.ljust(_BYTES - 1) + b"\n"
        longest //= 2


def _cut(text: str, longest: int) -> str:
    # What is printed need not be text.
    text = text.encode(errors="replace").decode()
    return text if len(text) <= longest else f"{text[:longest]}…"


def _write(descriptor: int, content: bytes) -> None:
    if os.pwrite(descriptor, content, 0) != len(content):
        raise OSError("only a part of it could be written. The disk is probably full")


def is_state_file(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


def state_files(directory: Path) -> list[Path]:
    """Of the process that describes the run first, then of its ranks."""
    with suppress(OSError):
        found = [Path(entry.path) for entry in os.scandir(directory) if is_state_file(entry.name)]
        return sorted(found, key=lambda path: (path.name != STATE_FILE, len(path.name), path.name))
    return []


def read_state(path: Path) -> State | None:
    """None for a file that is none, or was not written to its end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            return msgspec.json.decode(os.pread(descriptor, _BYTES, 0), type=State)
        finally:
            os.close(descriptor)
    except (OSError, ValueError, msgspec.DecodeError, RecursionError):
        return None


def is_over(path: Path, state: State | None) -> bool:
    """Whether the process that has written a state is certainly gone."""
    if state is not None and state.machine and state.machine == machine():
        return not is_alive(state.pid) or (state.born is not None and born(state.pid) != state.born)
    return is_free(path)


def nobody_records(directory: Path) -> bool:
    """Whether all processes that recorded into this directory are gone; False for one without states."""
    files = state_files(directory)
    return bool(files) and all(is_over(path, read_state(path)) for path in files)


def is_free(path: Path) -> bool:
    """Whether nobody holds a lock on a file or folder; False where that cannot be known."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def is_alive(pid: int) -> bool:
    """Whether a process of this number runs on this machine. One that only waits to be buried does not."""
    # Others stand for groups of processes.
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return _status(pid)[:1] not in ([b"Z"], [b"X"])


@cache
def machine() -> str:
    """What tells this machine, since its last start, from others and from containers on it, where process numbers mean something
    else; '' where nothing does."""
    with suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot} {Path('/proc/self/ns/pid').stat().st_ino}"
    return ""


def born(pid: int) -> int | None:
    """When a process started, in the ticks of this machine."""
    with suppress(ValueError, IndexError):
        return int(_status(pid)[19])
    return None


def _status(pid: int) -> list[bytes]:
    with suppress(OSError, ValueError):
        status = Path(f"/proc/{pid}/stat").read_bytes()
        # The name in parentheses may hold anything.
        return status[status.rindex(b")") + 2 :].split()
    return []
