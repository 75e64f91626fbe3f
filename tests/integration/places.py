"""Ways in which a recording has no place to go, each tried on a short training, plain and recorded, in one warm process.

    python places.py FOLDER

Prints one JSON object per way (see `Outcome`). Every training is a fork of this process; a way may give it a name space
with file systems of its own, limits, and a user who may do little.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import runpy
import shutil
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import torch._dynamo  # noqa: F401 - imported once, before the forks

from trueline.cli import check, main, run  # noqa: F401
from trueline.rerun.sandbox import kernel

STEPS = 60
SCRIPT = """
import os, shutil, sys
import torch
from torch import nn
{before}
torch.manual_seed(0)
x = torch.randn(256, 8)
y = x[:, :4].argmax(dim=1)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for step in range({steps}):
    {within}
    rows = torch.randint(0, len(x), (16,))
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x[rows]), y[rows])
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        print("step", step, loss.item().hex())
print("a note of the script", file=sys.stderr)
{after}
sys.exit({code})
"""


class Way(NamedTuple):
    """`expected`: what becomes of the recording: `none` (one warning), `part` (one warning), `whole`.

    `mount` works with all rights in a name space of its own; `arrange` and `limit` without, the latter only there where the
    training runs. `variables` are added to the environment.
    """

    name: str
    expected: str
    mount: Callable[[Path], None] | None = None
    arrange: Callable[[Path], None] | None = None
    limit: Callable[[Path], None] | None = None
    options: tuple[str, ...] = ()
    variables: dict[str, str] = {}  # noqa: RUF012 - never changed
    before: str = ""
    within: str = "pass"
    after: str = ""
    code: int = 0
    steps: int = STEPS


class Outcome(NamedTuple):
    name: str
    expected: str
    wrong: list[str]
    skipped: bool = False


class Forbidden(Exception):
    """This machine gives no file systems of one's own."""


def runs(place: Path) -> Path:
    return place / ".trueline" / "runs"


def small(kilobytes: int, options: str = "") -> Callable[[Path], None]:
    def mount(place: Path) -> None:
        runs(place).mkdir(parents=True)
        kernel.mount("tmpfs", str(runs(place)), "tmpfs", 0, f"mode=777,size={kilobytes}k{options}")

    return mount


def full(place: Path) -> None:
    small(64)(place)
    (runs(place) / "filler").write_bytes(bytes(65536))


def read_only_mount(place: Path) -> None:
    small(64)(place)
    kernel.make_read_only(str(runs(place)))


def full_state(place: Path) -> None:
    state = place / "state"
    state.mkdir()
    kernel.mount("tmpfs", str(state), "tmpfs", 0, "mode=777,size=16k")
    (state / "filler").write_bytes(bytes(16384))


def made(*parts: str, mode: int = 0o755, file: bool = False, link: str | None = None) -> Callable[[Path], None]:
    def arrange(place: Path) -> None:
        path = place.joinpath(*parts)
        path.parent.mkdir(parents=True, exist_ok=True)
        if link is not None:
            path.symlink_to(link)
        elif file:
            path.write_bytes(b"precious")
        else:
            path.mkdir(parents=True, exist_ok=True)
        if link is None:
            path.chmod(mode)

    return arrange


def largest_file(size: int) -> Callable[[Path], None]:
    return lambda _: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def few_descriptors(spare: int) -> Callable[[Path], None]:
    def limit(_: Path) -> None:
        first_free = os.dup(0)
        os.close(first_free)
        resource.setrlimit(resource.RLIMIT_NOFILE, (first_free + spare, first_free + spare))

    return limit


def gone(place: Path) -> None:
    folder = place / "gone"
    folder.mkdir()
    os.chdir(folder)
    folder.rmdir()


def without_stderr(_: Path) -> None:
    os.close(2)
    sys.stderr = None  # type: ignore[assignment]


def full_stderr(_: Path) -> None:
    full_device = os.open("/dev/full", os.O_WRONLY)
    os.dup2(full_device, 2)


LONG = "x" * 300
FILL = """
def fill():
    with open(".trueline/runs/filler", "wb", buffering=0) as filler:
        try:
            while filler.write(bytes(4096)):
                pass
        except OSError:
            pass
"""
AT_STEP_20 = "if step == 20: "
WAYS = (
    Way("a folder that is read only", "none", arrange=made(".trueline", "runs", mode=0o555)),
    Way("a working folder that is read only", "none", arrange=made(mode=0o555)),
    Way("a folder that may not be entered", "none", arrange=made(".trueline", mode=0o000)),
    Way("a file in the place of .trueline", "none", arrange=made(".trueline", file=True)),
    Way("a file in the place of the folder of runs", "none", arrange=made(".trueline", "runs", file=True), code=3),
    Way("a link that leads to itself", "none", arrange=made(".trueline", link=".trueline")),
    Way("a link that leads nowhere", "none", arrange=made(".trueline", "runs", link="/nowhere/runs")),
    Way("a folder below a file", "none", variables={"TRUELINE_RUNS": "/dev/null/runs"}),
    Way("a folder below /proc", "none", variables={"TRUELINE_RUNS": "/proc/runs"}),
    Way("a folder whose name is too long", "none", variables={"TRUELINE_RUNS": f"/tmp/{LONG}"}),  # noqa: S108
    Way("a name that is too long", "none", options=("--name", LONG)),
    Way("a sequence that is a folder", "none", arrange=made(".trueline", "runs", ".sequence")),
    Way("a working folder that is gone", "none", limit=gone),
    Way("a disk that is full", "none", mount=full),
    Way("a disk without room for another file", "none", mount=small(512, ",nr_inodes=2")),
    Way("a mount that is read only", "none", mount=read_only_mount, code=3),
    Way("no file may grow at all", "none", limit=largest_file(0)),
    Way("no file may grow past the state", "part", limit=largest_file(1024)),
    Way("nowhere to go, and stderr is closed", "none", arrange=made(".trueline", file=True), limit=without_stderr),
    Way("nowhere to go, and stderr is full", "none", arrange=made(".trueline", file=True), limit=full_stderr, code=1),
    Way("no home", "whole", variables={"HOME": ""}),
    Way("a home that is a file", "whole", arrange=made("home", file=True), variables={"HOME": "home"}),
    Way("a state folder that is read only", "whole", arrange=made("state", mode=0o555)),
    Way("a state folder that is full", "whole", mount=full_state),
    Way("a key that is a folder", "whole", arrange=made("state", "trueline", "key")),
    Way("one descriptor", "none", limit=few_descriptors(1)),
    Way("three descriptors", "whole", limit=few_descriptors(3)),
    Way("no room for the first step", "part", limit=largest_file(4096)),
    Way("a disk that fills up", "part", mount=small(96), steps=600),
    Way("a limit that is reached", "part", limit=largest_file(100_000), steps=600, code=3),
    Way("no room for the tensors", "part", mount=small(64), options=("--tensors", "0-50")),
    Way("no room for the database", "whole", mount=small(340)),
    Way("a disk that the script fills", "part", mount=small(400), before=FILL, within=AT_STEP_20 + "fill()",
        after="os.remove('.trueline/runs/filler')"),
    Way("a run that the script removes", "part", within=AT_STEP_20 + "shutil.rmtree('.trueline', ignore_errors=True)"),
    Way("a folder that the script makes read only", "whole",
        within=AT_STEP_20 + "[os.chmod(each, 0o555) for each, _, _ in os.walk('.trueline')]"),
    Way("a working folder that the script leaves and removes", "whole",
        variables={"TRUELINE_RUNS": "../elsewhere"},
        within=AT_STEP_20 + "here = os.getcwd(); os.mkdir('x'); os.chdir('x'); os.rmdir(here + '/x')"),
    Way("descriptors that the script closes", "part",
        within=AT_STEP_20 + "os.closerange(3, 4096); mine = [os.open(f'mine{n}', os.O_CREAT | os.O_RDWR) for n in range(20)]",
        after="print([os.fstat(each).st_size for each in mine])"),
)  # fmt: skip


def _give_up_rights() -> None:
    """Permissions hold for root too from here on."""
    libc = ctypes.CDLL(None, use_errno=True)
    version_3, this_process = 0x20080522, 0
    if libc.capset((ctypes.c_uint32 * 2)(version_3, this_process), (ctypes.c_uint32 * 6)()):
        raise OSError(ctypes.get_errno(), "capset")


class Trial:
    """One way, in a folder of its own."""

    def __init__(self, way: Way, folder: Path) -> None:
        self.way = way
        self.place = folder / "here"
        self.place.mkdir(parents=True)
        self._printed: dict[str, str] = {}
        self.script = folder / "train.py"
        self.script.write_text(
            SCRIPT.format(before=way.before, within=way.within, after=way.after, code=way.code, steps=way.steps), encoding="utf-8"
        )

    def tried(self) -> list[str]:
        if self.way.mount is not None:
            try:
                kernel.unshare(kernel.NEWNS | (kernel.NEWUSER if os.geteuid() else 0))
                kernel.mount("", "/", "", kernel.REC | kernel.PRIVATE)
            except OSError as problem:
                raise Forbidden from problem
            self.way.mount(self.place)
        _give_up_rights()
        os.chdir(self.place)
        os.environ |= {"HOME": str(self.place), "XDG_STATE_HOME": str(self.place / "state")}
        if "HOME" in self.way.variables:
            del os.environ["XDG_STATE_HOME"]
            self.way.variables["HOME"] or os.environ.pop("HOME")
        os.environ |= {name: value for name, value in self.way.variables.items() if value}
        # Plain first: what the recorded one leaves behind is not there yet.
        plain = self._forked(self._plain, "plain")
        if self.way.arrange is not None:
            self.way.arrange(self.place)
        recorded = self._forked(self._recorded, "recorded")
        return [*self._compared(plain, recorded), *self._judged()]

    def _plain(self) -> None:
        if self.way.limit is not None:
            self.way.limit(self.place)
        sys.argv = [str(self.script)]
        runpy.run_path(str(self.script), run_name="__main__")

    def _recorded(self) -> None:
        if self.way.limit is not None:
            self.way.limit(self.place)
        sys.argv = ["trueline", "run", *self.way.options, str(self.script)]
        main()

    def _check(self) -> None:
        sys.argv = ["trueline", "check", "latest", "--strict", "--json", "-"]
        main()

    def _forked(self, function: Callable[[], None], name: str) -> int:
        # Pipes, which no limit of files touches; what is printed fits into them.
        streams = {"out": os.pipe(), "err": os.pipe()}
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                for number, (reader, writer) in enumerate(streams.values(), 1):
                    os.close(reader)
                    os.dup2(writer, number)
                    os.close(writer)
                function()
                code = 0
            except SystemExit as stop:
                code = stop.code if isinstance(stop.code, int) else 0
            except BaseException:  # noqa: BLE001 - as python prints it
                with suppress(OSError, AttributeError):
                    traceback.print_exc()
            finally:
                for stream in (sys.stdout, sys.stderr):
                    with suppress(OSError, AttributeError):
                        stream.flush()
                os._exit(code)
        for stream, (reader, writer) in streams.items():
            os.close(writer)
            with os.fdopen(reader, "rb") as file:
                self._printed[f"{name}.{stream}"] = file.read().decode(errors="replace")
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    def _text(self, name: str) -> str:
        return self._printed[name]

    def _compared(self, plain: int, recorded: int) -> list[str]:
        wrong = []
        if plain != self.way.code or plain != recorded:
            wrong.append(f"exit code {plain} plain, {recorded} recorded: {self._text('plain.err')} {self._text('recorded.err')}")
        if self._text("plain.out") != self._text("recorded.out") or "step 50" not in self._text("plain.out"):
            wrong.append(f"output {self._text('recorded.out')!r} for {self._text('plain.out')!r}")
        lines = self._text("recorded.err").splitlines()
        warnings = [line for line in lines if line.startswith("trueline: ")]
        if [line for line in lines if line not in warnings] != self._text("plain.err").splitlines():
            wrong.append(f"stderr {lines}")
        is_heard = self.way.limit not in (without_stderr, full_stderr)
        expected = int(is_heard and self.way.expected != "whole")
        if len(warnings) != expected:
            wrong.append(f"warnings {warnings}")
        return wrong

    def _judged(self) -> list[str]:
        """What a check says of it afterwards, without the limits."""
        code = self._forked(self._check, "check")
        found = self._text("check.out")
        if self.way.expected == "none":
            right = code == 2 and not found and "Traceback" not in self._text("check.err")
            return [] if right else [f"check of nothing: {code} {found[:300]} {self._text('check.err')}"]
        if not found:
            return [f"check: {code} {self._text('check.err')}"]
        document: dict[str, Any] = json.loads(found)
        ended, incomplete = document["recording"]["status"], document["incomplete"]
        wrong = []
        if ended != ("failed" if self.way.code else "finished"):
            wrong.append(f"the run is {ended}")
        if self.way.expected == "whole" and (incomplete or code not in (0, 1)):
            wrong.append(f"check of the whole: {code} {incomplete}")
        if self.way.expected == "part":
            if not document["recording"]["recorder_error"] or not incomplete or code == 0:
                wrong.append(f"check of a part: {code} {incomplete} {document['recording']}")
            if document["verdict"]["headline"].startswith("No problem"):
                wrong.append(document["verdict"]["headline"])
        return wrong


def tried(way: Way, folder: Path) -> Outcome:
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            wrong: list[str] | None = Trial(way, folder).tried()
        except Forbidden:
            wrong = None
        except BaseException:  # noqa: BLE001 - told to the test
            wrong = [traceback.format_exc()]
        os.write(writer, json.dumps(wrong).encode()[:60_000])
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        wrong = json.loads(answer.read())
    os.waitpid(pid, 0)
    return Outcome(way.name, way.expected, wrong or [], skipped=wrong is None)


def work() -> None:
    folder = Path(sys.argv[1])
    chosen = sys.argv[2:]
    for number, way in enumerate(WAYS):
        if chosen and str(number) not in chosen:
            continue
        begun = time.monotonic()
        outcome = tried(way, folder / str(number))
        print(json.dumps({**outcome._asdict(), "seconds": time.monotonic() - begun}), flush=True)
        shutil.rmtree(folder / str(number), ignore_errors=True)


if __name__ == "__main__":
    work()
