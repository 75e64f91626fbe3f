"""What is done with the training that writes: diagnosed in several ways, killed or left alone; and what is wrong afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.harm._places import (
    Servers,
    differences,
    given_descriptor,
    prepare,
    processes_in,
    put_away,
    run,
    servers,
    shared_memory,
    temporary_file,
    what_is_there,
)

WAYS = ("diagnose", "reference", "no-rerun", "without rights")
SIGNALS = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGKILL)
STEPS = 60
# What a run keeps for good; anything else is left over.
_OF_A_RUN = {
    "run.json", "origin", "script.py", "before", "changes.json", "reruns.json", "rerun", "closer", "aligned", "perturbed",
    "map.json", "feed", "tensors", "rank0.sqlite", "rank0.journal", "manifest.json", "ending",
}  # fmt: skip
# A training that ends in the middle leaves these in a state between the first and the last.
_IN_BETWEEN = ("work/history.csv", "work/rotating.log", "work/out", "work/parts/", "work/atomic", "work/runs.db", "work/latest",
                "work/sent.bin", "work/folder", "work/archive.zip", "work/logged.db", "work/exchanged")  # fmt: skip
_LONGEST = 300.0


@dataclass
class Outcome:
    """One training, done with in one way. `wrong`: what is not as plain python leaves it."""

    way: str
    framework: str
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0
    when: str = ""
    diagnosis: dict[str, Any] | None = None


def command_of(way: str, framework: str, port: int, found: Path) -> list[str]:
    arguments = ["--framework", framework, "--port", str(port), "--steps", str(STEPS)]
    if way == "plain":
        return [sys.executable, "train.py", *arguments]
    words = [sys.executable, "-m", "trueline", "diagnose", "train.py", "--json", str(found)]
    if way == "reference":
        words += ["--reference", " ".join(["train.py", *arguments])]
    if way == "no-rerun":
        words += ["--no-rerun"]
    if way == "without rights" and os.geteuid() == 0:
        # As a user has it: the kernel gives a view of files only together with a name space of users.
        words = ["setpriv", "--bounding-set=-sys_admin", "--inh-caps=-sys_admin", *words]
    return [*words, "--", *arguments]


def environment(place: Path, listening: Servers | None = None) -> dict[str, str]:
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("TRUELINE", "PYTEST"))}
    return kept | {
        "TRUELINE_RUNS": str(place / "runs"), "XDG_STATE_HOME": str(place / "runs" / "state"), "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1", "TMPDIR": str(place / "tmp"), "HARM_SHARED": str(shared_memory(place)),
        "HARM_TEMPORARY": str(temporary_file(place)),
        "HARM_DEVICE": "" if listening is None or listening.device is None else str(listening.device),
    }  # fmt: skip


def _new_place(folder: Path) -> Path:
    place = Path(tempfile.mkdtemp(prefix="harm-", dir=folder))
    (place / "tmp").mkdir()
    prepare(place)
    return place


@cache
def plain(framework: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any], list[str]]:
    """What is there before plain python and after it, and what the servers received."""
    place = _new_place(folder)
    before = what_is_there(place)
    with servers(place) as listening:
        finished = run(command_of("plain", framework, listening.port, place), place, environment(place, listening))
    if finished.returncode:
        raise RuntimeError(f"The training itself fails:\n{finished.stderr}")
    found = what_is_there(place)
    put_away(place)
    return before, found, listening.received


def diagnosed(way: str, framework: str, folder: Path) -> Outcome:
    """The training, diagnosed to the end."""
    _, expected, requests = plain(framework, folder)
    place = _new_place(folder)
    found = place / "runs" / "found.json"
    found.parent.mkdir()
    started = time.monotonic()
    with servers(place) as listening:
        finished = run(command_of(way, framework, listening.port, found), place, environment(place, listening))
    received = listening.received
    outcome = Outcome(way, framework, seconds=time.monotonic() - started)
    outcome.wrong = differences(expected, what_is_there(place))
    put_away(place)
    if finished.returncode not in (0, 1):
        outcome.wrong.append(f"exit code {finished.returncode}: {finished.stderr[-500:]}")
    # A reference that is a script runs once for the first time; where it lies, paths of sockets lead nowhere.
    more = ["/started", *(["line of a log"] if listening.device is not None else [])] if way == "reference" else []
    if sorted(received) != sorted(requests + more):
        outcome.wrong.append(f"received {received} instead of {requests + more}")
    outcome.wrong += _left_over(place)
    if found.is_file():
        outcome.diagnosis = json.loads(found.read_text())
    return outcome


def killed(way: str, framework: str, folder: Path, number: signal.Signals, moment: Callable[[Path], None]) -> Outcome:
    """The training, its diagnosis killed when `moment` is over (it is given the place)."""
    before, expected, _ = plain(framework, folder)
    place = _new_place(folder)
    (place / "runs").mkdir()
    started = time.monotonic()
    with servers(place) as listening, given_descriptor(place, environment(place, listening)) as (given, told):
        command = command_of(way, framework, listening.port, place / "runs" / "found.json")
        process = subprocess.Popen(
            command, cwd=place / "work", env=told, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True, pass_fds=(given,),
        )  # fmt: skip
        moment(place)
        # Ctrl-C at a terminal is for all of its processes.
        if number is signal.SIGINT:
            os.killpg(process.pid, number)
        else:
            process.send_signal(number)
        printed, _ = process.communicate(timeout=_LONGEST)
    outcome = Outcome(way, framework, seconds=time.monotonic() - started)
    until = time.monotonic() + 10
    while (left := processes_in(place)) and time.monotonic() < until:
        time.sleep(0.05)
    outcome.wrong += [f"process {each} goes on" for each in left]
    found = what_is_there(place)
    put_away(place)
    ended = "last " in printed
    outcome.when = f"{number.name} {'after' if ended else 'during'} the training"
    outcome.wrong += differences(expected, found) if ended else _not_of_the_training(before, expected, found)
    listed = [sys.executable, "-m", "trueline", "runs"]
    if (finished := run(listed, place, environment(place))).returncode:
        outcome.wrong.append(f"trueline runs fails: {finished.stderr[-300:]}")
    outcome.wrong += _left_over(place)
    return outcome


def _not_of_the_training(before: dict[str, Any], after: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """A training that was cut off has changed some of its files and others not yet."""
    told = []
    for name in before.keys() | after.keys() | found.keys():
        if name.startswith(_IN_BETWEEN):
            continue
        if found.get(name) not in (before.get(name), after.get(name)):
            told.append(f"{name}: neither as before nor as after the training")
    return told


def _left_over(place: Path) -> list[str]:
    told = []
    for path in (place / "runs").glob("*"):
        if path.name in {"found.json", "state"}:
            continue
        if not (path / "run.json").is_file() and not path.name.startswith("."):
            told.append(f"{path.name} is left in the folder of runs")
        told += [f"{path.name}/{part.name} is left" for part in path.glob("*") if part.name not in _OF_A_RUN]
    return told
