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


# A process is charged with the memory of the one that it was forked from: the tests have frameworks in theirs, this has not.
_MEASURED = """
import os, sys
child = os.posix_spawnp(sys.argv[2], sys.argv[2:], os.environ)
_, status, usage = os.wait4(child, 0)
with open(sys.argv[1], "w") as file:
    file.write(f"{os.waitstatus_to_exitcode(status)} {usage.ru_maxrss << 10}")
"""


def trueline(*words: str, cwd: Path) -> tuple[int, str, int]:
    """Exit code, what it said, and peak memory of the command."""
    output, measured = cwd / "output.txt", cwd / "measured.txt"
    command = ["timeout", "--signal=KILL", str(_HANGS), sys.executable, "-m", "trueline", *words]
    with output.open("wb") as file:
        subprocess.run(
            [sys.executable, "-S", "-c", _MEASURED, str(measured), *command],
            cwd=cwd, env={**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "200"}, stdin=subprocess.DEVNULL, stdout=file,
            stderr=file, check=True,
        )  # fmt: skip
    code, peak = measured.read_text().split()
    return int(code), output.read_text(), int(peak)


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
