"""Healthy scripts of many kinds and styles: each is recorded and checked without error and without a false alarm."""

from __future__ import annotations

from pathlib import Path

import pytest
from integration.commands import STRANGERS, alarms, check, only_run, plain, recorded

SINGLE_FILES = sorted(STRANGERS.glob("*.py"))


@pytest.mark.parametrize("script", SINGLE_FILES, ids=lambda path: path.stem)
def test_stranger_is_recorded_and_passes(script: Path, tmp_path: Path) -> None:
    finished = recorded(str(script), cwd=tmp_path, runs=tmp_path / "runs")
    assert finished.returncode == 0, finished.stderr
    assert_healthy(tmp_path)


def test_package_of_three_files_is_recorded_and_passes(tmp_path: Path) -> None:
    (tmp_path / "splitapp").symlink_to(STRANGERS / "splitapp")
    command = ("-m", "splitapp.train", "--epochs", "5")
    finished = recorded(*command, cwd=tmp_path, runs=tmp_path / "runs")
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout == plain(*command, cwd=tmp_path).stdout
    assert_healthy(tmp_path)


def assert_healthy(folder: Path) -> None:
    finished, diagnosis = check(folder / "runs", folder)
    assert not alarms(diagnosis)
    assert finished.returncode == 0, finished.stdout + finished.stderr
    assert diagnosis["verdict"]["cause"] is None
    run = only_run(folder / "runs")
    assert run.info.status == "finished"
    assert run.info.recorder_error is None
    assert len(run.steps) > 0
