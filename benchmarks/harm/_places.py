"""A folder with files for the training to work on, the same every time, and what is there afterwards."""

from __future__ import annotations

import hashlib
import http.server
import os
import shutil
import socket
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np

SCRIPT = Path(__file__).with_name("writing.py")
_OLD = 1_600_000_000
_OTHER_USER = 12345
# Of these the time says when they were written; all other times are compared.
_NOT_COMPARED = {"runs", ".trueline"}


def prepare(place: Path) -> Path:
    """Make the files; gives the folder that the training is started in."""
    here, outside = place / "work", place / "outside"
    for folder in (
        outside,
        here / "out",
        here / "exp",
        here / "inputs",
        here / "parts",
        here / "moved" / "deep",
        here / "folder",
        here / "renamed",
    ):
        folder.mkdir(parents=True)
    shutil.copy(SCRIPT, here / "train.py")
    for name in ("log.txt", "low.log", "history.csv", "rotating.log", "link_target.txt", "pair_a", "settings.json", "input.csv",
                 "out/final.txt", "atomic.bin", "atomic.safetensors", "inputs/one", "inputs/two", "moved/deep/file", "shared.txt",
                 "cut.bin", "program.log", "untouched.txt", "sent.bin", "by_descriptor.txt", "folder/old", "renamed/file",
                 "exchanged_a", "exchanged_b", "inherited.log"):  # fmt: skip
        (here / name).write_text(f"of an earlier run: {name}\n", encoding="utf-8")
    (outside / "result.txt").write_text("run -1", encoding="utf-8")
    (here / "counter").write_text("3", encoding="utf-8")
    (here / "by_link.txt").symlink_to("link_target.txt")
    (here / "latest").symlink_to("exp")
    (here / "pair_b").hardlink_to(here / "pair_a")
    (here / "mapped.bin").write_bytes(bytes(64))
    np.zeros(16, np.float32).tofile(here / "array.dat")
    connection = sqlite3.connect(here / "runs.db")
    connection.executescript("CREATE TABLE run (id INTEGER); INSERT INTO run VALUES (1);")
    connection.close()
    with h5py.File(here / "data.h5", "w") as file:
        file.attrs["runs"] = 7
    if os.geteuid() == 0:
        os.chown(here / "shared.txt", _OTHER_USER, _OTHER_USER)
        (here / "shared.txt").chmod(0o666)
    for path in sorted(place.rglob("*"), reverse=True):
        os.utime(path, (_OLD, _OLD), follow_symlinks=False)
    return here


def what_is_there(place: Path) -> dict[str, Any]:
    """Every name with its kind, mode, owner, content or target, how many names it has, and its time where the training did not
    write it now."""
    found: dict[str, Any] = {}
    links: dict[int, str] = {}
    for path in sorted(place.rglob("*")):
        name = str(path.relative_to(place))
        if any(part in _NOT_COMPARED for part in path.relative_to(place).parts) or stat.S_ISSOCK(path.lstat().st_mode):
            continue
        if path.name == "server.pid":
            continue
        status = path.lstat()
        kind, mode = stat.S_IFMT(status.st_mode), oct(stat.S_IMODE(status.st_mode))
        entry: list[Any] = [kind, mode, status.st_uid, status.st_gid]
        if stat.S_ISLNK(status.st_mode):
            entry.append(str(path.readlink()))
        elif stat.S_ISREG(status.st_mode):
            # Databases hold times and counters of their own: what is in them is compared.
            reading = {"data.h5": _attributes, "runs.db": _rows, "logged.db": _rows}.get(path.name)
            entry += [path.read_bytes() if reading is None else reading(path), status.st_nlink]
            entry.append(links.setdefault(status.st_ino, name))
        if status.st_mtime <= _OLD and not path.is_dir():
            entry.append(status.st_mtime)
        found[name] = entry
    for name, path in (("shared memory", shared_memory(place)), ("temporary file", temporary_file(place))):
        if path.exists():
            found[name] = [path.stat().st_mode, path.read_bytes()]
    return found


def shared_memory(place: Path) -> Path:
    """A file of the training's outside of all folders of its own."""
    return Path("/dev/shm") / f"harm-{_mark(place)}"  # noqa: S108 - that is the place that is meant


def temporary_file(place: Path) -> Path:
    return Path("/tmp") / f"harm-{_mark(place)}"  # noqa: S108 - as above


def _mark(place: Path) -> str:
    return hashlib.md5(os.fsencode(place), usedforsecurity=False).hexdigest()[:12]


def _attributes(path: Path) -> int:
    with h5py.File(path, "r") as file:
        return int(file.attrs["runs"])


def _rows(path: Path) -> list[Any]:
    connection = sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)
    try:
        return connection.execute("SELECT * FROM run").fetchall()
    finally:
        connection.close()


def differences(expected: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """Names that are not as they should be, with what is wrong about them."""
    told = [f"{name} is missing" for name in expected.keys() - found.keys()]
    told += [f"{name} should not be there" for name in found.keys() - expected.keys()]
    for name in expected.keys() & found.keys():
        if expected[name] != found[name]:
            told.append(f"{name}: {_short(found[name])} instead of {_short(expected[name])}")
    return sorted(told)


def _short(entry: list[Any]) -> str:
    return str([part if not isinstance(part, bytes) else part[:60] for part in entry])


# Says so when it is told something.
_COUNTING = """
import signal, time
signal.signal(signal.SIGUSR1, lambda *_: print("signalled", flush=True))
print("ready", flush=True)
while True:
    time.sleep(60)
"""


class Servers:
    """A server of HTTP on loopback, one on a path, one among the devices and one that is sent signals: what they receive is
    in `received` when they have stopped."""

    def __init__(self, place: Path) -> None:
        self.received: list[str] = []
        received = self.received

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                received.append(self.path)
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_words: Any) -> None:
                """Nothing is printed."""

        self._http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._http.server_port
        self._unix = socket.socket(socket.AF_UNIX)
        # A path of at most about a hundred characters can be bound.
        folder = os.open(place / "outside", os.O_RDONLY)
        self._unix.bind(f"/proc/self/fd/{folder}/server.sock")
        os.close(folder)
        self._unix.listen()
        # Only root may put one among the devices, where the system's log has its own.
        self.device = Path("/dev") / f"harm-{_mark(place)}" if os.geteuid() == 0 else None
        self._log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._log.setblocking(False)  # noqa: FBT003 - as it is called
        if self.device is not None:
            self._log.bind(str(self.device))
        self._told = subprocess.Popen([sys.executable, "-c", _COUNTING], stdout=subprocess.PIPE, text=True)
        if self._told.stdout is not None:
            self._told.stdout.readline()
        (place / "work" / "server.pid").write_text(str(self._told.pid))
        for work in (self._http.serve_forever, self._listen):
            threading.Thread(target=work, daemon=True).start()

    def _listen(self) -> None:
        while True:
            try:
                connection, _ = self._unix.accept()
            except OSError:
                return
            with connection:
                self.received.append(connection.recv(100).decode())

    def stop(self) -> None:
        if self.device is not None:
            with suppress(BlockingIOError):
                while True:
                    self.received.append(self._log.recv(100).decode())
            # It must still be there.
            self.device.unlink()
        self._log.close()
        self._told.terminate()
        self.received += self._told.communicate()[0].split()
        self._http.shutdown()
        self._http.server_close()
        self._unix.close()


@contextmanager
def servers(place: Path) -> Iterator[Servers]:
    started = Servers(place)
    try:
        yield started
    finally:
        started.stop()


def processes_in(place: Path) -> list[int]:
    """The processes whose command or working directory has to do with this place."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            words = (folder / "cmdline").read_bytes() + bytes(folder.joinpath("cwd").readlink())
        except OSError:
            continue
        if os.fsencode(place) in words:
            found.append(int(folder.name))
    return found


def run(command: list[str], place: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    with given_descriptor(place, environment) as (number, told):
        return subprocess.run(
            command, cwd=place / "work", env=told, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            pass_fds=(number,),
        )  # fmt: skip


@contextmanager
def given_descriptor(place: Path, environment: dict[str, str]) -> Iterator[tuple[int, dict[str, str]]]:
    """A file that the training is given open."""
    number = os.open(place / "work" / "inherited.log", os.O_WRONLY | os.O_APPEND)
    try:
        yield number, environment | {"HARM_DESCRIPTOR": str(number)}
    finally:
        os.close(number)


def put_away(place: Path) -> None:
    for path in (shared_memory(place), temporary_file(place)):
        path.unlink(missing_ok=True)
