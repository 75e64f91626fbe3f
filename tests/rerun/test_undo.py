"""Taking back what a log of changes tells of: only of files, and only from the copies beside it."""

from __future__ import annotations

import json
from pathlib import Path

from trueline.rerun.sandbox.undo import LOG, undo


def test_names_of_anything_else_are_passed_over(tmp_path: Path) -> None:
    kept = tmp_path / "before"
    kept.mkdir()
    (kept / "1-0").write_text("as it was")
    (tmp_path / "secret").write_text("of somebody else")
    for name in ("file", "made", "other", "third", "relative"):
        (tmp_path / name).write_text("now")
    attributes = {"uid": 0, "gid": 0, "mode": 0o644, "atime": 1, "mtime": 1}
    steps = [
        {"op": "file", "path": str(tmp_path / "file"), "copy": "1-0", **attributes},
        {"op": "made", "path": str(tmp_path / "made")},
        # Not what a recording writes.
        {"op": "file", "path": str(tmp_path / "other"), "copy": "../secret", **attributes},
        {"op": "file", "path": str(tmp_path / "third"), "copy": str(tmp_path / "secret"), **attributes},
        {"op": "made", "path": f"{tmp_path}/before/../relative"},
        {"op": "made", "path": "relative"},
        {"op": "made", "path": "/dev/full/nothing"},
        {"op": "made", "path": 7},
        {"op": "else"},
        ["made"],
    ]
    (kept / LOG).write_text("".join(json.dumps(step) + "\n" for step in steps))
    undo(str(kept))
    assert (tmp_path / "file").read_text() == "as it was"
    assert not (tmp_path / "made").exists()
    assert [(tmp_path / name).read_text() for name in ("other", "third", "relative")] == ["now"] * 3
