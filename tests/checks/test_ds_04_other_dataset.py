"""What ds.04 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from builders import build_run

from trueline.checks import check_of_id
from trueline.model import Conclusion
from trueline.store import Run


@pytest.mark.parametrize("changed", [False, True])
def test_a_file_that_could_not_be_compared_is_named(tmp_path: Path, changed: bool) -> None:
    files = [tmp_path / name for name in ("one.bin", "two.bin")]
    for file in files:
        file.write_bytes(b"content")
        digest = hashlib.sha256(b"content").hexdigest()
        file.with_name(f"{file.name}.sha256").write_text(f"{digest}  {file.name}\n")
    details = [{"path": str(file), "size": 7, "mtime": file.stat().st_mtime} for file in files]
    opened = [(100 + n, 0, "file_opened", None, None, None, json.dumps(each)) for n, each in enumerate(details)]
    directory = build_run(tmp_path / "run", [1.0], rows={"event": opened}, cwd=str(tmp_path))
    if changed:
        files[1].write_bytes(b"other")
    found = check_of_id("ds.04").conclude(Run(directory))
    assert found.conclusion is (Conclusion.NOT_CHECKED if changed else Conclusion.NO_PROBLEM), found
    assert found.summary.startswith("Not checked: two.bin could" if changed else "2 of 2 opened files")
