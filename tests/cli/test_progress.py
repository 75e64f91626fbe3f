"""What appears on standard error while a script runs, with a real terminal behind it."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from builders import build_run

from trueline.cli.progress import StepReader
from trueline.store import Writer, last_step

SLOW = """\
import time
import torch

weight = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD(weight.parameters(), lr=0.1)
for step in range(15):
    optimizer.zero_grad()
    weight(torch.ones(4, 2)).square().mean().backward()
    optimizer.step()
    time.sleep(0.2)
"""


def _on_terminal(folder: Path, *, output_too: bool) -> str:
    """What a terminal gets from a diagnosis whose standard error, and maybe output, it is."""
    (folder / "train.py").write_text(SLOW)
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "trueline", "diagnose", "train.py"],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=theirs if output_too else subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "OMP_NUM_THREADS": "1"},
    ):
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 4096):
                seen += chunk
        except OSError:
            pass  # Linux says so when the last process has closed the terminal.
        os.close(ours)
    return seen.decode()


def test_step_and_loss_have_their_own_line_when_the_script_prints_elsewhere(tmp_path: Path) -> None:
    seen = _on_terminal(tmp_path, output_too=False)
    assert "Recording train.py" in seen
    assert "steps, loss " in seen
    assert "\x1b]0;" not in seen
    assert seen.rstrip().endswith("\x1b[K") or "\r\x1b[K" in seen


def test_only_the_title_moves_when_the_script_prints_to_the_same_terminal(tmp_path: Path) -> None:
    seen = _on_terminal(tmp_path, output_too=True)
    assert "\x1b]0;trueline: " in seen
    assert "\x1b[23;0t" in seen
    assert "\r\x1b[K" not in seen.partition("\x1b[23;0t")[0]


def test_last_step(tmp_path: Path) -> None:
    assert last_step(tmp_path) is None
    assert last_step(build_run(tmp_path / "empty")) is None
    assert last_step(build_run(tmp_path / "run", [2.5, 1.5])) == (2, 1.5)
    (tmp_path / "run" / "rank0.sqlite").write_bytes(b"no database" * 100)
    assert last_step(tmp_path / "run") is None


def _write_step(writer: Writer, step: int, loss: float | str | None) -> None:
    writer.commit({"step": [(step, step, 1, loss, 1.0, 1, 0.1, 0.0, 1, 1, None, None, None)], "event": []})


def test_steps_are_followed_while_they_are_written(tmp_path: Path) -> None:
    steps = StepReader(tmp_path)
    assert steps.last_step() is None
    writer = Writer(tmp_path, 0)
    assert steps.last_step() is None
    _write_step(writer, 0, 2.5)
    _write_step(writer, 1, None)
    assert steps.last_step() == last_step(tmp_path) == (2, None)
    _write_step(writer, 2, "nan")
    assert str(steps.last_step()) == str(last_step(tmp_path)) == "(3, nan)"
    _write_step(writer, 3, 1.5)
    with (tmp_path / "rank0.journal").open("ab") as file:
        file.write(b"\x80\x00")
    assert steps.last_step() == last_step(tmp_path) == (4, 1.5)
    writer.close()
    assert not (tmp_path / "rank0.journal").exists()
    assert steps.last_step() == last_step(tmp_path) == (4, 1.5)
