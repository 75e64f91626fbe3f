"""Kills short trainings at random moments and looks at what is left; one process per framework, which is imported once.

    python benchmarks/kills/_warm.py FRAMEWORK KILLS SEED FOLDER

Prints one JSON object per kill (see `Outcome`), made in a fork of this process each.
"""

from __future__ import annotations

import importlib
import json
import os
import random
import re
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import NamedTuple

from trueline.cli import check, main, run  # noqa: F401 - imported before the forks
from trueline.errors import TruelineError
from trueline.store import Run, find_run
from trueline.store.runs import RUNS_VARIABLE

HERE = Path(__file__).resolve().parent
IMPORTED = {"pytorch": "torch", "mindspore": "mindspore"}
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
PHASES = ("starting", "training", "training", "ending")
STEPS = 40
NAME = "first"
LONGEST_SECONDS = 120.0
_OF_A_RUN = r"first/(run\.json|ending|origin|script\.py|rank0\.sqlite|before/(files\.jsonl|\d+-\d+))"
EXPECTED = re.compile(rf"runs/(\.sequence|{_OF_A_RUN})|state/trueline/key")
NO_TRAINING = "print('nothing')\n"


class Outcome(NamedTuple):
    """`complete`: steps that the script itself wrote down; `recorded`: those of the record, None where there is none.
    `half_made`: whether the kill left something that the next command had to remove or complete."""

    framework: str
    signal: str
    phase: str
    status: str | None
    complete: int
    recorded: int | None
    wrong: list[str]
    half_made: bool = False


class Training:
    """One training in a folder of its own."""

    def __init__(self, framework: str, place: Path) -> None:
        self.place = place
        self.place.mkdir(parents=True)
        script = HERE / f"short_{framework}.py"
        self.started = time.monotonic()
        self.pid = self._forked("run", "--name", NAME, str(script))

    def _forked(self, *words: str) -> int:
        pid = os.fork()
        if pid:
            return pid
        code = 70
        try:
            os.chdir(self.place)
            os.environ |= {RUNS_VARIABLE: str(self.place / "runs"), "XDG_STATE_HOME": str(self.place / "state")}
            output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(output, 1)
            os.dup2(output, 2)
            sys.argv = ["trueline", *words]
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 1
        except KeyboardInterrupt:
            code = 130
        finally:
            sys.stdout.flush()
            os._exit(code)

    def complete(self) -> int:
        try:
            return (self.place / "steps.txt").read_bytes().count(b"\n")
        except FileNotFoundError:
            return 0

    def over(self, pid: int, seconds: float) -> int | None:
        """The exit code once it has ended; None when it has not by then."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            ended, status = os.waitpid(pid, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.002)
        return None

    def wait_for(self, steps: int) -> None:
        until = time.monotonic() + LONGEST_SECONDS
        while self.complete() < steps and time.monotonic() < until:
            time.sleep(0.001)

    def command(self, *words: str) -> int:
        """The exit code of a command that comes after it."""
        pid = self._forked(*words)
        code = self.over(pid, LONGEST_SECONDS)
        if code is None:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return -1
        return code


class Lengths(NamedTuple):
    start: float
    training: float
    end: float


def rehearsed(framework: str, place: Path) -> Lengths:
    """How long an undisturbed training takes."""
    training = Training(framework, place)
    training.wait_for(1)
    first = time.monotonic()
    training.wait_for(STEPS)
    last = time.monotonic()
    code = training.over(training.pid, LONGEST_SECONDS)
    if code != 0:
        raise SystemExit(f"The training failed:\n{(place / 'output.txt').read_text(encoding='utf-8')}")
    return Lengths(first - training.started, last - first, time.monotonic() - last)


def killed(framework: str, place: Path, number: int, lengths: Lengths, rng: random.Random) -> Outcome:
    # All pairs come, the signals in turn within each phase.
    phase, sent = PHASES[number % len(PHASES)], SIGNALS[(number // len(PHASES) + number) % len(SIGNALS)]
    training = Training(framework, place)
    if phase == "starting":
        # The folder and its first files are made early.
        time.sleep(lengths.start * rng.random() ** 3)
    elif phase == "training":
        training.wait_for(rng.randrange(1, STEPS))
        time.sleep(rng.uniform(0.0, lengths.training / STEPS))
    else:
        training.wait_for(STEPS)
        time.sleep(rng.uniform(0.0, lengths.end))
    # Not buried yet, where it has ended already: the number is still its own.
    os.kill(training.pid, sent)
    wrong = []
    if training.over(training.pid, LONGEST_SECONDS) is None:
        wrong.append("it does not end")
        os.kill(training.pid, signal.SIGKILL)
        os.waitpid(training.pid, 0)
    half_made = bool(_unexpected(place))
    code = training.command("check", "latest", "--strict", "--json", "found.json")
    return _judged(training, Outcome(framework, sent.name, phase, None, training.complete(), None, wrong, half_made), code)


def _judged(training: Training, outcome: Outcome, code: int) -> Outcome:
    place, wrong = training.place, outcome.wrong
    os.environ[RUNS_VARIABLE] = str(place / "runs")
    wrong += [f"left behind: {name}" for name in _unexpected(place)]
    if not (place / "runs" / NAME).is_dir():
        if outcome.complete:
            wrong.append(f"no record of {outcome.complete} steps")
        (place / "nothing.py").write_text(NO_TRAINING, encoding="utf-8")
        if training.command("run", "--name", NAME, "nothing.py") != 0:
            wrong.append("its name is taken")
        return outcome._replace(wrong=wrong)
    try:
        run = Run(find_run(NAME))
    except TruelineError as problem:
        if outcome.complete:
            wrong.append(str(problem))
        return outcome._replace(status="without a record")
    steps, status = [step.id for step in run.steps], run.info.status
    run.close()
    # The step that was running may have come to its end without the script being able to say so.
    if not outcome.complete <= len(steps) <= outcome.complete + 1 or steps != list(range(len(steps))):
        wrong.append(f"{outcome.complete} steps were complete, {len(steps)} are recorded")
    if status != "finished":
        found = json.loads((place / "found.json").read_text(encoding="utf-8"))
        if code == 0 or not found["incomplete"] or found["verdict"]["headline"].startswith("No problem"):
            wrong.append(f"exit code {code} and {found['verdict']['headline']!r} of a run that was {status}")
    elif len(steps) != STEPS:
        wrong.append(f"finished after {len(steps)} steps")
    return outcome._replace(status=status, recorded=len(steps))


def _unexpected(place: Path) -> list[str]:
    """All files and empty folders that Trueline wrote, but those of a run that is complete."""
    found = [path for folder in ("runs", "state") for path in (place / folder).rglob("*")]
    names = [str(path.relative_to(place)) for path in found if not path.is_dir() or not any(path.iterdir())]
    return [name for name in names if not EXPECTED.fullmatch(name)]


def work() -> None:
    framework, kills, seed, folder = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), Path(sys.argv[4])
    importlib.import_module(IMPORTED[framework])
    if framework == "pytorch":
        # With the first optimizer.
        importlib.import_module("torch._dynamo")
    rng = random.Random(f"{framework} {seed}")  # noqa: S311 - moments, not secrets
    lengths = rehearsed(framework, folder / "rehearsal")
    for number in range(kills):
        place = folder / str(number)
        outcome = killed(framework, place, number, lengths, rng)
        if not outcome.wrong:
            shutil.rmtree(place)
        print(json.dumps(outcome._asdict()), flush=True)


if __name__ == "__main__":
    work()
