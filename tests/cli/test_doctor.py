"""`trueline doctor` finds out by trying."""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path

import pytest
from builders import build_run, largest_file, trueline

from trueline.cli.doctor import _storage, _traps
from trueline.store import FAILURES_FILE


def test_this_environment_is_well(tmp_path: Path) -> None:
    examined = trueline("doctor", cwd=tmp_path)
    assert examined.returncode == 0, examined.stdout
    assert version("torch") in examined.stdout
    assert "SQLite" in examined.stdout
    assert "a record can be appended, folded and read" in examined.stdout
    assert "All is well" in examined.stdout
    assert list(tmp_path.iterdir()) == []


def test_runs_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    examined = trueline("doctor", cwd=tmp_path, TRUELINE_RUNS=str(tmp_path / "file" / "runs"))
    assert examined.returncode == 1
    assert "TRUELINE_RUNS" in examined.stdout
    assert "Traceback" not in examined.stderr


def test_disk_too_full_for_a_record(tmp_path: Path) -> None:
    with largest_file(1000):
        points = {point.subject: point for point in _storage(tmp_path)}
    assert not points["runs folder"].advice
    assert "no record can be made" in points["SQLite"].state
    assert "local disk" in points["SQLite"].advice
    with largest_file(10):
        points = {point.subject: point for point in _storage(tmp_path)}
    assert "bytes could be written" in points["SQLite"].state
    assert list(tmp_path.iterdir()) == []


def test_folder_on_a_file_system_that_takes_no_files() -> None:
    points = list(_storage(Path("/proc/trueline")))
    assert points[0].advice


@pytest.mark.parametrize(
    ("numpy", "mindspore", "pyarrow", "advised"),
    [
        ("2.1.0", "2.7.0", None, "numpy<2"),
        ("1.26.4", None, "26.0.0", "pyarrow<26"),
        ("1.26.4", "2.7.0", "25.0.0", None),
        ("2.1.0", None, "26.0.0", None),
        (None, None, None, None),
    ],
)
def test_versions_that_do_not_go_together(
    numpy: str | None, mindspore: str | None, pyarrow: str | None, advised: str | None
) -> None:
    points = list(_traps(numpy, mindspore, pyarrow))
    assert [advised in point.advice for point in points if advised] == ([True] if advised else [])
    assert bool(points) == bool(advised)


def test_tracebacks_of_the_last_run(tmp_path: Path) -> None:
    runs = tmp_path / ".trueline" / "runs"
    build_run(runs / "first", [1.0], started="2026-01-02T03:04:05")
    (runs / "first" / FAILURES_FILE).write_text("the watch of an earlier run")
    last = build_run(runs / "second", [1.0], started="2026-01-02T03:04:06")
    told = trueline("doctor", "--last", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert told.stdout == "Nothing failed while second was recorded.\n"
    (last / FAILURES_FILE).write_text(
        "ModuleWatch._built, at step 0\nTraceback (most recent call last):\n  …\nTypeError: [odd]\n"
    )
    told = trueline("doctor", "--last", cwd=tmp_path)
    assert told.returncode == 1
    assert "Traceback (most recent call last):\n  …\nTypeError: [odd]\n" in told.stdout


def test_no_run_at_all(tmp_path: Path) -> None:
    told = trueline("doctor", "--last", cwd=tmp_path)
    assert told.returncode == 2
    assert "There are no runs" in told.stderr
