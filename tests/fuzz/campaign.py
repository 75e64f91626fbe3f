"""Fuzz the readers: `python tests/fuzz/campaign.py --minutes 60` (`make fuzz`).

Every input is made from its reader's name, the seed and its number, so that each one that went wrong can be made again:
`--only READER --first NUMBER --inputs 1`. The readers run in a child: where that dies, the input is noted and the next child
goes on behind it.
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

ROOT = Path(__file__).parents[2]
# Of processor time, which a busy machine does not make longer; and of the clock, for what waits.
MOST_SECONDS = 10.0
_MOST_WAITED = 60.0
MOST_BYTES = 512 << 20
# What a child may take before the system refuses it more, so that a fault does not cost the machine.
_ADDRESS_SPACE = 8 << 30
_SHOWN = 40


class TookTooLong(BaseException):
    """No border may take it for a damaged file."""


@dataclass
class Ends:
    """How the inputs of one reader ended; `wrong` are those that must not be, with how to make them again."""

    kinds: Counter[str] = field(default_factory=Counter)
    wrong: dict[str, str] = field(default_factory=dict)
    wrong_inputs: int = 0
    longest: float = 0.0
    longest_input: int = 0
    peak: int = 0

    def add(self, other: Ends) -> None:
        self.kinds += other.kinds
        self.wrong = {**other.wrong, **self.wrong}
        self.wrong_inputs += other.wrong_inputs
        if other.longest > self.longest:
            self.longest, self.longest_input = other.longest, other.longest_input
        self.peak = max(self.peak, other.peak)


def input_of(name: str, seed: int, number: int) -> bytes:
    """The file that an input is."""
    from fuzz.readers import READERS

    reader = READERS[name]
    chance = Random(f"{name}/{seed}/{number}")  # noqa: S311 - to be made again
    return chance.choice(reader.mutations)(chance.choice(_seeds_of(name)), chance)


_SEEDS: dict[str, list[bytes]] = {}


def _seeds_of(name: str) -> list[bytes]:
    if name not in _SEEDS:
        from fuzz.readers import READERS

        _SEEDS[name] = READERS[name].seeds()
    return _SEEDS[name]


def try_one(name: str, folder: Path, content: bytes, ends: Ends, number: int) -> None:
    from fuzz.readers import READERS

    from trueline.errors import TruelineError

    reader = READERS[name]
    path = folder / reader.file
    path.unlink(missing_ok=True)
    path.write_bytes(content)
    before = peak()
    started = time.process_time()
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, max(_MOST_WAITED, MOST_SECONDS))
    wrong = None
    try:
        reader.read(folder)
        kind = "read"
    except TruelineError as refused:
        kind = type(refused).__name__
        if str(folder) not in str(refused) and path.name not in str(refused):
            wrong = f"the file is not named: {str(refused)[:200]}"
    except TookTooLong:
        kind, wrong = "too long", f"longer than {MOST_SECONDS:.0f} s, in {_place(sys.exc_info()[2])}"
    except Exception as problem:  # noqa: BLE001 - these are what is looked for
        kind = "another exception"
        wrong = f"{type(problem).__name__} ({str(problem)[:150]}) in {_place(problem.__traceback__)}"
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    seconds = time.process_time() - started
    ends.peak = peak()
    if wrong is None and ends.peak > max(before, MOST_BYTES):
        wrong = f"{ends.peak >> 20} MiB of memory"
    ends.kinds[kind] += 1
    if seconds > ends.longest:
        ends.longest, ends.longest_input = seconds, number
    if wrong is not None:
        ends.wrong_inputs += 1
        ends.wrong.setdefault(wrong, f"input {number} of {len(content):,} bytes")


def peak() -> int:
    return _highest() - _inherited


def _highest() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


# What a process of the campaign holds when it begins: the readers, their libraries, the seeds.
_OWN_BYTES = 288 << 20
_inherited = 0


def leave_out_what_is_there() -> None:
    """A fork is charged with what its parent holds, which may be a process of tests with two frameworks in it."""
    global _inherited  # noqa: PLW0603 - there is one process
    _inherited = max(0, _highest() - _OWN_BYTES)


def _place(trace: Any) -> str:
    frames = traceback.extract_tb(trace)
    own = [frame for frame in frames if "/trueline/" in frame.filename] or list(frames)
    return f"{Path(own[-1].filename).name}:{own[-1].lineno} ({own[-1].name})"


def run_reader(name: str, seed: int, first: int, count: int, ends_at: float) -> Ends:
    """So many inputs of one reader, each tried in a child until it dies."""
    total, number = Ends(), first
    while number < first + count and time.monotonic() < ends_at:
        ends, number = _in_a_child(name, seed, number, first + count, ends_at)
        total.add(ends)
    return total


def _in_a_child(name: str, seed: int, first: int, end: int, ends_at: float) -> tuple[Ends, int]:
    import pickle

    at = mmap.mmap(-1, 8)
    receive, send = os.pipe()
    # Whoever forks must not hand down what waits to be printed.
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        os.close(receive)
        ends = Ends()
        try:
            _work(name, seed, first, end, ends_at, ends, at)
            with os.fdopen(send, "wb") as file:
                pickle.dump((ends, int.from_bytes(at[:8], "little") + 1), file)
        finally:
            os._exit(0)
    os.close(send)
    with os.fdopen(receive, "rb") as file:
        told = file.read()
    _, status, usage = os.wait4(child, 0)
    if told:
        return pickle.loads(told)  # noqa: S301 - of our own child
    number = int.from_bytes(at[:8], "little")
    ends = Ends(peak=usage.ru_maxrss << 10)
    ends.kinds["died"] += 1
    ends.wrong_inputs += 1
    signals = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    ends.wrong[f"the process died ({signal.Signals(signals).name if signals else status})"] = f"input {number}"
    return ends, number + 1


def _work(name: str, seed: int, first: int, end: int, ends_at: float, ends: Ends, at: mmap.mmap) -> None:
    import warnings

    from fuzz.readers import READERS

    def too_long(*_: Any) -> None:
        raise TookTooLong

    warnings.simplefilter("ignore")
    leave_out_what_is_there()
    for number in (signal.SIGALRM, signal.SIGPROF):
        signal.signal(number, too_long)
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    shared = Path("/dev/shm")  # noqa: S108 - files that never reach the disk
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as directory:
        folder = Path(directory) / "run"
        (folder / READERS[name].file).parent.mkdir(parents=True)
        os.chdir(directory)
        for number in range(first, end):
            at[:8] = number.to_bytes(8, "little")
            content = input_of(name, seed, number)
            for beside, kept in READERS[name].files().items():
                if beside != READERS[name].file and not (folder / beside).exists():
                    (folder / beside).write_bytes(kept)
            for made in folder.glob("rank0.*"):
                if made.name not in READERS[name].files() and made.name != READERS[name].file:
                    made.unlink()
            try_one(name, folder, content, ends, number)
            if time.monotonic() > ends_at:
                break


def campaign(inputs: int, seconds: float, seed: int, only: list[str], first: int = 0) -> dict[str, Ends]:
    """All readers, each its share of the inputs."""
    from fuzz.readers import READERS

    chosen = {name: reader for name, reader in READERS.items() if not only or name in only}
    shares = sum(reader.share for reader in chosen.values())
    for name in chosen:
        _seeds_of(name)
    found: dict[str, Ends] = {}
    ends_at = time.monotonic() + seconds
    for name, reader in chosen.items():
        found[name] = run_reader(name, seed, first, max(1, inputs * reader.share // shares), ends_at)
        print(_line(name, found[name]), flush=True)
    return found


def _line(name: str, ends: Ends) -> str:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in ends.kinds.most_common())
    wrong = "".join(f"\n    WRONG {what} [{where}]" for what, where in list(ends.wrong.items())[:_SHOWN])
    longest = f"longest {ends.longest:.2f} s (input {ends.longest_input})"
    return f"{name:12} {ends.kinds.total():>9,}: {kinds}; {longest}, peak {ends.peak >> 20} MiB{wrong}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=int(time.time()), help="another one every time")
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--first", type=int, default=0)
    asked = parser.parse_args()
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "src")]
    print(f"seed {asked.seed}", flush=True)
    started = time.monotonic()
    found = campaign(asked.inputs, asked.minutes * 60, asked.seed, asked.only, asked.first)
    total, wrong = sum(each.kinds.total() for each in found.values()), sum(each.wrong_inputs for each in found.values())
    longest, peak_bytes = max(each.longest for each in found.values()), max(each.peak for each in found.values())
    seconds = time.monotonic() - started
    print(f"{total:,} inputs in {seconds:.0f} s: {wrong:,} wrong")
    print(f"peak {peak_bytes >> 20} MiB, longest {longest:.2f} s")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
