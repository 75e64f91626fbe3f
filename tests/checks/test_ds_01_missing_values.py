"""ds.01 on whole scripts: gaps that break the training, stand-ins that pass for numbers, and gaps that are taken care of."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding


@pytest.mark.parametrize("path", case_files("ds.01", "faulty"), ids=case_name)
def test_fault_is_named_with_its_line(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "ds.01", path)
    assert_cause(diagnosis, "ds.01")


@pytest.mark.parametrize("path", case_files("ds.01", "healthy"), ids=case_name)
def test_look_alike_is_left_alone(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "ds.01")["conclusion"] != "error"
