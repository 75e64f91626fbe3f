"""mp.01 on whole scripts: operations that leave the finite numbers, and infinities that belong where they are."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding


@pytest.mark.parametrize("path", case_files("mp.01", "faulty"), ids=case_name)
def test_fault_is_named_with_its_line(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "mp.01", path)
    assert_cause(diagnosis, "mp.01")
    assert diagnosis["nonfinite"]["location"] == finding(diagnosis, "mp.01")["location"]


@pytest.mark.parametrize("path", case_files("mp.01", "healthy"), ids=case_name)
def test_look_alike_is_left_alone(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "mp.01")["conclusion"] == "no_problem"
