"""Files read, seeds set and lines printed: noted with their lines, while the script notices nothing."""

from __future__ import annotations

import builtins
import copy
import io
import os
import pickle
import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from builders import run_info

from trueline.model import Event
from trueline.recorder import Recorder
from trueline.recorder.files import FileWatch
from trueline.recorder.patches import Patches
from trueline.recorder.process import ProcessWatch
from trueline.store import Run, Writer, write_info


class Watched:
    """A process that is watched until its events are asked for."""

    def __init__(self, directory: Path, info: Path) -> None:
        self.directory = directory
        self.recorder = Recorder(lambda: Writer(directory, 0), str(info), budget=0.05)
        self.patches = Patches()
        ProcessWatch(self.recorder).install(self.patches)
        FileWatch(self.recorder).install(self.patches)
        self.recorder.start(framework="none")

    def events(self, kind: str) -> list[Event]:
        self.stop()
        run = Run(self.directory)
        found = run.events_of(kind)
        run.close()
        return found

    def stop(self) -> None:
        self.patches.undo()
        self.recorder.close()


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    directory = tmp_path / "run"
    directory.mkdir()
    write_info(directory, run_info("run"))
    here = Watched(directory, Path(__file__).parent)
    yield here
    here.stop()


def test_files_that_are_written(watched: Watched, tmp_path: Path) -> None:
    old, new = tmp_path / "old.txt", tmp_path / "new.txt"
    subprocess.run(["touch", str(old)], check=True)
    for path in (old, new, new):
        path.write_text("1", encoding="utf-8")
    found = watched.events("file_written")
    assert [event.detail for event in found] == [{"path": str(old), "new": False}, {"path": str(new), "new": True}]


def test_files_that_are_read(watched: Watched, tmp_path: Path) -> None:
    data = tmp_path / "data.csv"
    data.write_text("1,2\n", encoding="utf-8")
    for _ in range(3):
        assert data.read_bytes() == b"1,2\n"
    with open(str(data)) as handle:  # noqa: PTH123 - as scripts do
        assert handle.read() == "1,2\n"
    (tmp_path / "module.py").write_text("", encoding="utf-8")
    (tmp_path / "module.py").read_text(encoding="utf-8")
    found = watched.events("file_opened")
    assert [event.detail for event in found] == [{"path": str(data), "size": 4, "mtime": data.stat().st_mtime}]
    location = found[0].location
    assert location is not None
    assert (location.file, location.source) == ("test_process.py", 'assert data.read_bytes() == b"1,2\\n"')


def test_files_that_are_written_or_missing_are_not_noted(watched: Watched, tmp_path: Path) -> None:
    for mode in ("w", "a", "wb"):
        with open(tmp_path / f"out-{mode}.txt", mode):  # noqa: PTH123 - as scripts do
            pass
    with pytest.raises(FileNotFoundError):
        open(tmp_path / "missing.txt")  # noqa: PTH123, SIM115 - as scripts do
    assert [event.detail["path"] for event in watched.events("file_opened")] == []


def test_a_file_name_that_is_not_text(watched: Watched, tmp_path: Path) -> None:
    odd = tmp_path / os.fsdecode(b"caf\xe9.csv")
    odd.write_text("1", encoding="utf-8")
    assert odd.read_text(encoding="utf-8") == "1"
    assert [event.detail["path"] for event in watched.events("file_opened")] == [str(tmp_path / "caf?.csv")]
    assert watched.recorder.failure is None


def test_files_that_are_written_below_pythons_own_open(watched: Watched, tmp_path: Path) -> None:
    part, whole = tmp_path / "part", tmp_path / "whole"
    os.close(os.open(part, os.O_CREAT | os.O_WRONLY))
    part.replace(whole)
    os.close(os.open(whole, os.O_RDONLY))
    found = watched.events("file_written")
    assert [event.detail["path"] for event in found] == [str(part), str(whole)]


def test_descriptors_are_left_alone_and_names_of_bytes_are_names(watched: Watched, tmp_path: Path) -> None:
    data = tmp_path / "data.bin"
    data.write_bytes(b"abc")
    with open(os.open(data, os.O_RDONLY), "rb") as handle:  # noqa: PTH123 - the descriptor is the point
        assert handle.read() == b"abc"
    with open(os.fsencode(data), "rb") as handle:  # noqa: PTH123 - the bytes are the point
        assert handle.read() == b"abc"
    assert [event.detail["path"] for event in watched.events("file_opened")] == [str(data)]


def test_seeds(watched: Watched) -> None:
    random.seed(3)
    first = random.random()  # noqa: S311 - the stream is the point
    np.random.seed(seed=4)  # noqa: NPY002 - as scripts do
    random.seed("a word")
    random.seed(2**80)
    random.seed()
    random.seed(3)
    assert random.random() == first  # noqa: S311 - the stream is the point
    found = watched.events("seed")
    assert [(event.detail["library"], event.detail["seed"]) for event in found] == [
        ("random", 3), ("numpy", 4), ("random", "a word"), ("random", 2**80), ("random", None), ("random", 3),
    ]  # fmt: skip
    assert found[0].location is not None
    assert found[0].location.source == "random.seed(3)"


def test_printed_lines_with_numbers(watched: Watched, capsys: pytest.CaptureFixture[str]) -> None:
    print("epoch", 1, "loss", 0.25, sep="|")
    print("hello")
    print(np.float32(0.5), object, [1])
    print("y" * 1000 + "7", end="")
    print("nowhere 5", file=io.StringIO())
    assert capsys.readouterr().out == f"epoch|1|loss|0.25\nhello\n0.5 {object} [1]\n{'y' * 1000}7"
    texts = [event.detail["text"] for event in watched.events("printed")]
    assert texts == ["epoch|1|loss|0.25", "0.5", "y" * 300, "nowhere 5"]


def test_printing_what_is_not_text(watched: Watched) -> None:
    print("\udce9 1", file=io.StringIO())
    assert [event.detail["text"] for event in watched.events("printed")] == ["? 1"]


def test_printing_fails_as_it_always_did(watched: Watched) -> None:
    with pytest.raises(TypeError, match="sep must be None or a string"):
        print(1, 2, sep=3)  # type: ignore[call-overload]
    assert watched.events("printed") == []


class Trainer:
    """Builtins do not become methods."""

    log = print
    load = open


def test_builtins_kept_in_a_class_stay_builtins(watched: Watched, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    del watched

    class Late:
        log = print
        load = open

    (tmp_path / "x.txt").write_text("x", encoding="utf-8")
    for trainer in (Trainer(), Late()):
        trainer.log("step 1")
        with trainer.load(tmp_path / "x.txt") as handle:
            assert handle.read() == "x"
    assert capsys.readouterr().out == "step 1\nstep 1\n"


def test_replaced_functions_are_copied_and_pickled_as_the_originals_are(watched: Watched) -> None:
    del watched
    assert copy.deepcopy({"log": print})["log"] is print
    assert pickle.loads(pickle.dumps(print)) is print  # noqa: S301 - just made
    assert pickle.loads(pickle.dumps(open)) is open  # noqa: S301 - just made
    assert pickle.loads(pickle.dumps(random.seed)).__name__ == "seed"  # noqa: S301 - just made
    assert (print.__name__, open.__module__) == ("print", "io")
    assert builtins.open is io.open


def test_everything_is_put_back(watched: Watched) -> None:
    replaced = (builtins.open, io.open, builtins.print, random.seed, np.random.seed)
    watched.stop()
    originals = (builtins.open, io.open, builtins.print, random.seed, np.random.seed)
    assert all(one is not other for one, other in zip(replaced, originals, strict=True))
    assert type(builtins.open) is type(builtins.print) is type(len)
    assert builtins.open is io.open


def test_a_watch_that_fails_does_not_reach_the_script(
    watched: Watched, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(watched.recorder, "call_sites", None)
        print("loss 1")
        print("loss 2")
    random.seed(1)
    seen = capsys.readouterr()
    assert seen.out == "loss 1\nloss 2\n"
    assert seen.err.count("trueline: the watch ProcessWatch._printed failed at step 0") == 1
    # The others go on.
    assert [event.detail["library"] for event in watched.events("seed")] == ["random"]
