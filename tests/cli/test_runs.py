"""`trueline runs`: list, delete, prune."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from builders import build_run, trueline

RUNS = Path(".trueline") / "runs"


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / RUNS).iterdir())


def _three(folder: Path) -> None:
    for number, name in enumerate(["first", "second", "third"]):
        build_run(folder / RUNS / name, [2.3, 1.5], started=f"2026-01-0{number + 1}T00:00:00")


def test_list_shows_the_newest_last(tmp_path: Path) -> None:
    _three(tmp_path)
    listed = trueline("runs", cwd=tmp_path)
    assert listed.returncode == 0, listed.stderr
    assert [line.split()[:4] for line in listed.stdout.splitlines()[2:]] == [
        [name, "finished", "2", "1.5"] for name in ("first", "second", "third")
    ]
    assert trueline("runs", "list", cwd=tmp_path).stdout == listed.stdout


def test_empty_folder_says_what_to_do(tmp_path: Path) -> None:
    listed = trueline("runs", cwd=tmp_path)
    assert listed.returncode == 0
    assert "trueline run SCRIPT" in listed.stdout


def test_delete_takes_several_names(tmp_path: Path) -> None:
    _three(tmp_path)
    deleted = trueline("runs", "delete", "first", "third", cwd=tmp_path)
    assert deleted.returncode == 0, deleted.stderr
    assert "Deleted 2 runs" in deleted.stdout
    assert _names(tmp_path) == ["second"]


def test_delete_with_an_unknown_name_deletes_nothing(tmp_path: Path) -> None:
    _three(tmp_path)
    deleted = trueline("runs", "delete", "first", "fourth", cwd=tmp_path)
    assert deleted.returncode == 2
    assert "fourth" in deleted.stderr
    assert len(_names(tmp_path)) == 3


def test_delete_refuses_what_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    deleted = trueline("runs", "delete", "data", cwd=tmp_path)
    assert deleted.returncode == 2
    assert "not a Trueline run directory" in deleted.stderr
    assert (tmp_path / "data").is_dir()


def test_prune_keeps_the_newest(tmp_path: Path) -> None:
    _three(tmp_path)
    assert trueline("runs", "prune", "--keep", "1", "--yes", cwd=tmp_path).returncode == 0
    assert _names(tmp_path) == ["third"]


def test_prune_by_age(tmp_path: Path) -> None:
    yesterday = (datetime.now().astimezone() - timedelta(days=1)).isoformat()
    build_run(tmp_path / RUNS / "old", [2.3], started="2020-01-01T00:00:00")
    build_run(tmp_path / RUNS / "young", [2.3], started=yesterday)
    assert trueline("runs", "prune", "--older-than", "7", "--yes", cwd=tmp_path).returncode == 0
    assert _names(tmp_path) == ["young"]


def test_prune_does_not_delete_unasked(tmp_path: Path) -> None:
    _three(tmp_path)
    pruned = trueline("runs", "prune", "--keep", "0", cwd=tmp_path)
    assert pruned.returncode == 2
    assert "--yes" in pruned.stderr
    assert len(_names(tmp_path)) == 3


def test_prune_wants_one_rule(tmp_path: Path) -> None:
    for words in ((), ("--keep", "1", "--older-than", "2")):
        pruned = trueline("runs", "prune", *words, cwd=tmp_path)
        assert pruned.returncode == 2
        assert "--keep N" in pruned.stderr


def test_run_that_is_being_recorded_is_kept(tmp_path: Path) -> None:
    build_run(tmp_path / RUNS / "busy", [2.3], status="running")
    assert trueline("runs", "delete", "busy", cwd=tmp_path).returncode == 2
    assert trueline("runs", "prune", "--keep", "0", "--yes", cwd=tmp_path).returncode == 0
    assert _names(tmp_path) == ["busy"]
