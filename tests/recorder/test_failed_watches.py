"""A watch that fails is taken off and named; the record tells of it from that moment on."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from builders import run_info

from trueline.adapters.base import Watch, essential, guarded
from trueline.model.parts import EVERYTHING, PARTS
from trueline.recorder import Recorder
from trueline.recorder.patches import Patches
from trueline.recorder.watches import KNOWN, PARTS_OF, installed, parts_of
from trueline.store import FAILURES_FILE, Run, Writer, write_info


class BrittleWatch(Watch):
    """Fails when it is told to."""

    @guarded
    def see(self, problem: Exception | None = None) -> int:
        if problem is not None:
            raise problem
        return 1

    @guarded
    def see_more(self, problem: Exception | None = None) -> tuple[int | None, str]:
        return self.see(problem), "more"

    @essential
    def end(self, problem: Exception) -> None:
        raise problem

    def install(self, patches: Patches) -> None:  # noqa: ARG002 - as all of them
        raise AttributeError("no such function in this version")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("not even this")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    write_info(tmp_path, run_info("run"))
    return tmp_path


@pytest.fixture
def watch(directory: Path) -> BrittleWatch:
    recorder = Recorder(lambda: Writer(directory, 0), str(directory), budget=0.05, failures=directory / FAILURES_FILE)
    recorder.start(framework="none")
    return BrittleWatch(recorder)


def failed_in(directory: Path) -> list[str]:
    run = Run(directory)
    found = [failed.watch for failed in run.failed_watches]
    run.close()
    return found


def test_it_is_off_and_named_once(watch: BrittleWatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert watch.see() == 1
    assert watch.see(TypeError("odd\nshape")) is None
    assert watch.see() is None
    assert watch.see(TypeError("again")) is None
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "the watch BrittleWatch.see failed at step 0 (TypeError: odd shape)" in said
    assert "Not complete from now on: everything" in said
    assert watch.recorder.active
    assert watch.recorder.failure is None


def test_the_record_tells_of_it_while_it_is_still_made(watch: BrittleWatch, directory: Path) -> None:
    """Nothing was committed since: as where the process is killed in the same step."""
    watch.recorder.event("printed")
    watch.see(TypeError("odd"))
    run = Run(directory)
    (failed,) = run.failed_watches
    assert (failed.watch, failed.parts, failed.step, failed.error) == ("BrittleWatch.see", EVERYTHING, 0, "TypeError: odd")
    assert run.events == []
    run.close()


def test_what_is_called_inside_of_another_watch_fails_alone(watch: BrittleWatch, directory: Path) -> None:
    assert watch.see_more(ValueError("inside")) == (None, "more")
    assert watch.see_more() == (None, "more")
    assert failed_in(directory) == ["BrittleWatch.see"]
    assert not watch.recorder.busy


def test_a_watch_that_cannot_be_installed(watch: BrittleWatch, directory: Path) -> None:
    installed(watch, Patches())
    assert failed_in(directory) == ["BrittleWatch.install"]
    assert watch.see() == 1


def test_what_ends_a_step_ends_the_recording(watch: BrittleWatch, directory: Path) -> None:
    watch.end(ValueError("no place"))
    assert watch.recorder.failure == "ValueError: no place"
    assert "the recorder, at step 0\nTraceback" in (directory / FAILURES_FILE).read_text()


def test_an_exception_that_cannot_be_printed(watch: BrittleWatch, directory: Path) -> None:
    watch.see(UnspeakableError())
    run = Run(directory)
    assert run.failed_watches[0].error == "UnspeakableError"
    run.close()


def test_tracebacks_are_kept_within_bounds(watch: BrittleWatch, directory: Path) -> None:
    for number in range(40):
        watch.recorder.contain(f"watch {number}", ValueError("long " * 100_000))
    text = (directory / FAILURES_FILE).read_text()
    assert text.count("at step 0\n") == 20
    assert 20 * 6_000 < len(text) < 20 * 9_000
    assert len(failed_in(directory)) == 40


def test_a_failure_before_there_is_a_record_is_in_it(directory: Path) -> None:
    recorder = Recorder(lambda: Writer(directory, 0), str(directory), budget=0.05)
    recorder.contain("FileWatch._opened", OSError("gone"))
    recorder.start(framework="none")
    assert failed_in(directory) == ["FileWatch._opened"]


def test_a_forked_child_does_not_write_into_the_record(watch: BrittleWatch, directory: Path) -> None:
    watch.recorder.forget()
    watch.recorder.contain("FileWatch._opened", OSError("gone"))
    assert failed_in(directory) == []


@pytest.mark.parametrize("framework", ["pytorch", "mindspore"])
def test_every_watch_has_its_row(framework: str) -> None:
    for package in ("trueline.recorder", f"trueline.adapters.{framework}"):
        path: Any = importlib.import_module(package).__path__
        for info in pkgutil.iter_modules(path, f"{package}."):
            importlib.import_module(info.name)
    known = {name for name in KNOWN if not name.startswith("BrittleWatch")}
    assert known <= set(PARTS_OF)
    assert {part for parts in PARTS_OF.values() for part in parts} <= set(PARTS)


def test_no_row_is_left_of_a_watch_that_is_gone() -> None:
    importlib.import_module("trueline.adapters.pytorch")
    importlib.import_module("trueline.adapters.mindspore")
    assert {name for name in PARTS_OF if not name.endswith(".install")} <= KNOWN


def test_a_class_takes_with_it_what_its_methods_record() -> None:
    assert parts_of("ClipWatch.install") == tuple(part for part in EVERYTHING if part in PARTS_OF["ClipWatch._clipped"])
    assert parts_of("NobodysWatch.see") == EVERYTHING
