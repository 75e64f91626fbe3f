"""What is seen of a script's files from outside."""

from __future__ import annotations

from pathlib import Path

from trueline.rerun.inventory import Inventory


def test_what_was_made_changed_and_removed(tmp_path: Path) -> None:
    for name in ("kept", "written", "mode", "gone"):
        (tmp_path / name).write_text("old")
    files = Inventory([tmp_path], tmp_path / "runs")
    (tmp_path / "written").write_text("new and longer")
    # Nothing of its content or time changes.
    (tmp_path / "mode").chmod(0o600)
    (tmp_path / "gone").unlink()
    (tmp_path / "made" / "deep").mkdir(parents=True)
    found = files.changes()
    assert found.complete
    assert found.made == [str(tmp_path / "made")]
    assert sorted(found.changed) == [str(tmp_path / name) for name in ("mode", "written")]
    assert found.removed == [str(tmp_path / "gone")]


def test_the_folder_of_runs_is_never_hidden_from_a_second_run(tmp_path: Path) -> None:
    """It may have been made together with what is around it."""
    files = Inventory([tmp_path], tmp_path / "out" / "runs")
    (tmp_path / "out" / "runs" / "train").mkdir(parents=True)
    (tmp_path / "out" / "model").touch()
    assert files.changes().made == [str(tmp_path / "out" / "model")]
