"""ds.04 on whole scripts: files that are not what they should be, and files that the script made itself."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from builders import build_run
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name

from trueline.checks import check_of_id
from trueline.model import Conclusion
from trueline.store import Run


@pytest.mark.parametrize("path", case_files("ds.04", "faulty"), ids=case_name)
def test_fault_is_named_with_its_line(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "ds.04", path)
    assert_cause(diagnosis, "ds.04")


@pytest.mark.parametrize("path", case_files("ds.04", "healthy"), ids=case_name)
def test_look_alike_is_left_alone(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    assert_nothing_found(diagnose_case(path))


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
