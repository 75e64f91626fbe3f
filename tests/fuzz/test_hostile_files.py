"""Files that ask for more than any machine has are refused by the real command: by name, in little memory, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from fuzz.campaign import MOST_BYTES
from fuzz.hostile import HOSTILE, long_line, packed_well

_HANGS = 120


def trueline(*words: str, cwd: Path) -> tuple[int, str, int]:
    """Exit code, what it said, and peak memory of the command."""
    output = cwd / "output.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            ["timeout", "--signal=KILL", str(_HANGS), sys.executable, "-m", "trueline", *words],
            cwd=cwd, env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}, stdin=subprocess.DEVNULL, stdout=file,
            stderr=file,
        )  # fmt: skip
        _, status, usage = os.wait4(process.pid, 0)
    # The process is gone; its Popen object is told so that it does not wait for it.
    process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, output.read_text(), usage.ru_maxrss << 10


@pytest.mark.parametrize("name", HOSTILE)
def test_it_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(tmp_path)
    hostile = HOSTILE[name]
    hostile.make(tmp_path)
    code, said, peak = trueline(*hostile.command, cwd=tmp_path)
    messages = [line for line in said.splitlines() if line.startswith("trueline: ")]
    assert len(messages) == 1, said[-2000:]
    assert "Traceback" not in said
    assert hostile.named in messages[0]
    assert hostile.words in messages[0]
    assert len(messages[0]) < 1000
    assert code == 2
    assert peak < MOST_BYTES, f"{peak >> 20} MiB"


@pytest.mark.parametrize("make", [long_line, packed_well], ids=lambda make: make.__name__)
def test_what_only_looks_odd_is_read(tmp_path: Path, make: object) -> None:
    make(tmp_path)  # type: ignore[operator]
    (path,) = tmp_path.iterdir()
    code, said, _ = trueline("data", path.name, cwd=tmp_path)
    assert code in (0, 1), said
    assert "Traceback" not in said
