"""Names that would give orders to a terminal, forge lines of a report or become links: seen on a real terminal, and in JSON."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from builders import build_run
from safetensors.numpy import save_file

# Each holds what follows OWNED in sight: the tests could not fail if the names were not shown.
ORDERS = ("\x1b]0;OWNED\x07", "\x1b[31mOWNED", "\x9b31mOWNED", "\u202eOWNED", "\u200bOWNED\u2066", "[link=http://x]OWNED[/link]")
HOSTILE = "a" + "".join(ORDERS) + "\nFORGED OWNED\x7f\r"
# A file has no slash in its name, and may hold bytes that are no text.
FILE_NAME = HOSTILE.replace("/", "|") + "\udcff"
NEVER = ("\x1b]0;OWNED", "\x1b[31mOWNED", "\x9b", "\u202e", "\u200b", "\u2066", "\x1b]8;", "\nFORGED", "\x7f", "\udcff")


def on_terminal(*words: str, cwd: Path, runs: str = "runs") -> tuple[str, int]:
    """What a terminal gets of a command whose output and errors it is, and the exit code."""
    ours, theirs = pty.openpty()
    environment = {key: value for key, value in os.environ.items() if key not in {"COLUMNS", "NO_COLOR"}}
    environment |= {"TERM": "xterm-256color", "OMP_NUM_THREADS": "1", "TRUELINE_RUNS": runs}
    with subprocess.Popen(
        [sys.executable, "-m", "trueline", *words],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    ) as process:
        os.close(theirs)
        seen = b""
        try:
            while chunk := os.read(ours, 65536):
                seen += chunk
        except OSError:
            pass  # Linux says so when the last process has closed the terminal.
        os.close(ours)
    return seen.decode("utf-8", "surrogateescape"), process.returncode


def hostile_run(directory: Path, *, losses: tuple[float, ...] = (2.3, 1.5), **info: Any) -> Path:
    """All that a run can say, said with hostile words."""
    told = json.dumps({HOSTILE: HOSTILE})
    rows = {
        "location": [(9, HOSTILE, 7, HOSTILE, HOSTILE)],
        "module": [(9, 1, HOSTILE, HOSTILE, HOSTILE, "linear", None, 9, 9, told)],
        "parameter": [(9, 1, 9, HOSTILE, "[3]", HOSTILE, 1, 0, None, 9, 9)],
        "optimizer": [(2, HOSTILE, 9)],
        "hyperparameter": [(0, 2, 0, HOSTILE, json.dumps(HOSTILE))],
        "loader": [(9, HOSTILE, 10, 5, HOSTILE, 9, told)],
        "event": [(3, 0, HOSTILE, 9, 9, None, told), (4, 0, "file_opened", None, 9, None, json.dumps({"path": f"/{HOSTILE}"}))],
        "meta": [("recorder_error", HOSTILE)],
    }
    described = {
        "command": [HOSTILE, HOSTILE], "cwd": HOSTILE, "script": HOSTILE, "python": HOSTILE, "error": HOSTILE, "status": "failed",
        "frameworks": {HOSTILE: HOSTILE}, "platform": HOSTILE, "recorder_error": HOSTILE, "trueline": HOSTILE,
    }  # fmt: skip
    build_run(directory, list(losses), rows=rows, **described | info)
    text = (directory / "run.json").read_text()
    (directory / "run.json").write_text(json.dumps(json.loads(text) | {"name": HOSTILE}))
    return directory


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    hostile_run(folder / "runs" / "plain")
    hostile_run(folder / "runs" / FILE_NAME)
    hostile_run(folder / "runs" / "untrained", losses=(), status="killed")
    values = np.arange(6, dtype=np.float32)
    save_file({HOSTILE: values, "other": values}, folder / "one.safetensors", {"format": HOSTILE})
    save_file({HOSTILE: values + 1, f"{HOSTILE}2": values[:2]}, folder / f"{FILE_NAME}.safetensors")
    save_file({HOSTILE: values + 1}, folder / "two.safetensors")
    fields = ",".join('"' + name.replace('"', "") + '"' for name in (HOSTILE, f"label{HOSTILE}"))
    lines = [f'"{HOSTILE}{number % 3}","{HOSTILE}{number % 2}"' for number in range(40)]
    (folder / "table.csv").write_text("\n".join([fields, *lines]), newline="")
    (folder / f"{FILE_NAME[:-1]}.csv").write_text("\n".join([fields, *lines]), newline="")
    broken = hostile_run(folder / "runs" / f"broken{FILE_NAME}")
    (broken / "run.json").write_text(json.dumps({"format": HOSTILE, HOSTILE: 1}))
    return folder


COMMANDS: dict[str, tuple[str, ...]] = {
    "check": ("check", "plain", "-v"),
    "check of a hostile name": ("check", FILE_NAME),
    "check of what never trained": ("check", "untrained", "-v"),
    "diagnose": ("diagnose", "plain", "--reference", FILE_NAME),
    "show": ("show", "plain", "--modules", "--steps", "5", "--events", "--scaler"),
    "runs": ("runs",),
    "params of a run": ("params", "plain"),
    "params of a file": ("params", "one.safetensors"),
    "params of two": ("params", "one.safetensors", f"{FILE_NAME}.safetensors"),
    "compare files": ("compare", "one.safetensors", "two.safetensors", "-v"),
    "compare runs": ("compare", "plain", FILE_NAME),
    "convert": ("convert", "one.safetensors", "out.pth", "--to", "safetensors"),
    "data": ("data", "table.csv", "-v", "--label", f"label{HOSTILE}"),
    "data of a hostile name": ("data", f"{FILE_NAME[:-1]}.csv", "-v"),
    "review": ("review", "plain", "-o", f"{FILE_NAME}.html"),
    "no such run": ("show", f"no{FILE_NAME}"),
    "a broken run": ("show", f"broken{FILE_NAME}"),
    "no such command": (f"no{FILE_NAME}",),
    "no such option": ("check", f"--{FILE_NAME}"),
    "no such script": ("diagnose", f"no{FILE_NAME}.py"),
}


@pytest.mark.parametrize("words", COMMANDS.values(), ids=COMMANDS)
def test_names_give_no_orders(words: tuple[str, ...], place: Path) -> None:
    seen, _ = on_terminal(*words, cwd=place)
    # Two runs that are not aligned are compared without a name.
    assert "OWNED" in seen or words[:2] in {("convert", "one.safetensors"), ("compare", "plain")}, seen
    assert "Traceback" not in seen, seen
    assert [order for order in NEVER if order in seen] == [], repr(seen)


@pytest.mark.parametrize(
    "words",
    [
        ("check", FILE_NAME), ("params", f"{FILE_NAME}.safetensors"), ("compare", "one.safetensors", "two.safetensors"),
        ("data", f"{FILE_NAME[:-1]}.csv"), ("compare", "plain", FILE_NAME), ("show", "plain", "--scaler"),
    ],
    ids=lambda words: words[0],
)  # fmt: skip
def test_json_on_a_terminal_is_quiet_and_faithful(words: tuple[str, ...], place: Path) -> None:
    seen, _ = on_terminal(*words, "--json", "-", cwd=place)
    assert [order for order in NEVER if order in seen] == [], repr(seen)
    texts = list(strings_of(json.loads(seen[seen.index("{") :])))
    assert any(name in text for text in texts for name in (HOSTILE, FILE_NAME[:-1])), texts


def strings_of(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from strings_of(each)
    elif isinstance(value, list):
        for each in value:
            yield from strings_of(each)


def test_what_is_not_hostile_stays_as_it_is(tmp_path: Path) -> None:
    name = "训练-模型 (naïve) × été 🙂"
    build_run(tmp_path / "runs" / name, [2.3])
    assert name in on_terminal("show", name, cwd=tmp_path)[0]
