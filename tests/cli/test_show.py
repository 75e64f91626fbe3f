"""`trueline show` on small real runs."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
from builders import Row, build_run, trueline

RUNS = Path(".trueline") / "runs"


def test_summary_of_a_run(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "first", [2.3, 2.1, 1.9, 1.8])
    shown = trueline("show", "first", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    for words in (
        "train.py --lr 0.1", "finished", "torch 2.13.0", "4, 10 ms each", "lr 0.05, momentum 0.9", "train.py:30",
        "0.1 (step 0) → 0.05 (step 2)", "TensorDataset", "1797 samples, batches of 32, SequentialSampler", "train.py:25",
        "fc1 Linear", "2080", "line 10", "Lines are of train.py", "4.24",
    ):  # fmt: skip
        assert words in shown.stdout
    assert "Events" not in shown.stdout


def test_latest_is_the_default_and_steps_and_events_are_on_request(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "old", [2.3], started="2026-01-01T00:00:00")
    build_run(tmp_path / RUNS / "new", [2.3, 2.2, math.nan], started="2026-01-02T00:00:00")
    shown = trueline("show", "--steps", "2", "--events", cwd=tmp_path)
    assert shown.stdout.splitlines()[0].split() == ["Run", "new"]
    assert "NaN" in shown.stdout
    assert "backward" in shown.stdout
    assert "3 times" in shown.stdout


@pytest.mark.parametrize(
    ("info", "words"),
    [
        ({"status": "failed", "exit_code": 1, "error": "ValueError: no data"}, "ValueError: no data"),
        ({"recorder_error": "disk is full"}, "disk is full"),
        ({"status": "running", "pid": 2**22 + 1}, "killed"),
    ],
)
def test_what_went_wrong_is_shown(tmp_path: Path, info: dict[str, Any], words: str) -> None:
    build_run(tmp_path / RUNS / "first", [2.3], **info)
    assert words in trueline("show", "first", cwd=tmp_path).stdout


def test_run_without_steps(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "first")
    shown = trueline("show", "first", cwd=tmp_path)
    assert shown.returncode == 0
    assert "none: the script did not train" in shown.stdout


def test_large_model_is_cut_to_a_screen_unless_all_is_wanted(tmp_path: Path) -> None:
    layers: list[Row] = [
        (100 + index, 1, f"blocks.{index}", "net", "Linear", "linear", None, None, None, "{}") for index in range(60)
    ]
    build_run(tmp_path / RUNS / "first", [2.3], rows={"module": layers})
    assert "60 deeper modules not shown" in trueline("show", "first", cwd=tmp_path).stdout
    assert "59 Linear" in trueline("show", "first", "--modules", cwd=tmp_path).stdout


def test_80_columns(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "first", [2.3, 2.2])
    lines = trueline("show", "first", "--steps", "2", "--events", cwd=tmp_path, COLUMNS="80").stdout.splitlines()
    assert max(len(line) for line in lines) <= 80


def test_every_optimizer_has_its_own_curve(tmp_path: Path) -> None:
    second: list[Row] = [(step, step * 10 + 9, 2, 9.5, 0.5, 1, 0.01, 0.0, 0, 1, None, 4, 0) for step in (1, 3)]
    build_run(tmp_path / RUNS / "first", [2.0] * 4, rows={"optimizer": [(2, "Adam", 6)], "step": second})
    shown = trueline("show", "first", cwd=tmp_path).stdout
    assert "Loss of SGD (train.py:30)" in shown
    assert "Loss of Adam (train.py:43)" in shown


def scaled_rows(overflows: set[int], steps: int) -> dict[str, list[Row]]:
    """The events of a scaler that starts at 65536 and is halved where gradients overflow."""
    events: list[Row] = []
    scale = 65536.0
    for step in range(steps):
        events.append((step * 10 + 4, step, "scale", None, 3, scale, None))
        events.append((step * 10 + 8, step, "optimizer_step", 1, 3, None, '{"skipped": true}' if step in overflows else None))
        scale /= 2 if step in overflows else 1
    return {"event": events}


def test_log_of_a_scaler(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "first", [2.3, math.nan, 1.9], rows=scaled_rows({0, 1}, 3))
    shown = trueline("show", "first", "--scaler", "--json", "log.json", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    table = [line.split() for line in shown.stdout.partition("Gradient scaler")[2].splitlines()]
    assert ["0", "2.3", "left", "out", "65,536"] in table
    assert ["1", "NaN", "left", "out", "32,768"] in table
    assert ["2", "1.9", "16,384"] in table
    assert "2 steps of 3 left out" in shown.stdout
    document = json.loads((tmp_path / "log.json").read_text())
    assert (document["schema"], document["overflows"]) == ("trueline.scaler/1", 2)
    assert document["steps"][1:] == [
        {"step": 1, "loss": None, "overflow": True, "scale": 32768.0},
        {"step": 2, "loss": 1.9, "overflow": False, "scale": 16384.0},
    ]


def test_quiet_steps_of_a_long_log_share_a_line(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "first", [1.0] * 200, rows=scaled_rows({120}, 200))
    shown = trueline("show", "first", "--scaler", cwd=tmp_path).stdout.partition("Gradient scaler")[2]
    table = [line.split()[0] for line in shown.splitlines() if line.split()]
    assert table[2:5] == ["0–119", "120", "121–199"]
    document = json.loads(trueline("show", "first", "--scaler", "--json", "-", cwd=tmp_path).stdout)
    assert len(document["steps"]) == 200


def test_no_scaler_and_no_log_to_write(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "first", [2.3])
    assert "No loss was scaled" in trueline("show", "first", "--scaler", cwd=tmp_path).stdout
    refused = trueline("show", "first", "--json", "log.json", cwd=tmp_path)
    assert refused.returncode == 2
    assert "--scaler --json FILE" in refused.stderr
