"""The command line of msrun with the recorder in it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import pytest

from trueline.adapters.mindspore.msrun import with_recorder
from trueline.errors import TruelineError

RECORDER = ["trueline", "run", "--name", "first"]
TWO = ["--worker_num=2", "--local_worker_num=2", "--join=True"]


@pytest.mark.parametrize(
    ("given", "started"),
    [
        (["train.py", "--lr", "0.1"], ["python", "-m", *RECORDER, "train.py", "--lr", "0.1"]),
        (["python", "-u", "train.py", "-u"], ["python", "-u", "-m", *RECORDER, "train.py", "-u"]),
        (["python3", "-W", "ignore", "-m", "pkg.train"], ["python3", "-W", "ignore", "-m", *RECORDER, "-m", "pkg.train"]),
    ],
)
def test_the_recorder_stands_in_front_of_the_script(given: list[str], started: list[str]) -> None:
    assert with_recorder([*TWO, *given], RECORDER) == [*TWO, *started]


def test_msrun_is_told_to_wait(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = with_recorder(["--worker_num", "2", "--local_worker_num", "2", "train.py"], RECORDER)
    assert arguments[4:6] == ["--join=True", "python"]
    assert "--join=True" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ([*TWO, "pytest", "tests"], "pytest"),
        ([*TWO, "python", "-c", "print(1)"], "python -c"),
        (["--worker_num=4", "--local_worker_num=2", "train.py"], "--node_rank"),
    ],
)
def test_what_cannot_be_recorded_is_refused(given: list[str], words: str) -> None:
    with pytest.raises(TruelineError, match=words):
        with_recorder(given, RECORDER)


def test_python_is_the_one_that_has_trueline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", os.defpath)
    with_recorder([*TWO, "train.py"], RECORDER)
    assert Path(shutil.which("python") or "").parent == Path(sys.executable).parent
