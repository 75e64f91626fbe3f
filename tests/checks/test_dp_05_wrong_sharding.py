"""dp.05 on whole scripts: data that ranks and workers divide wrongly, and divisions that merely look odd."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name


@pytest.mark.parametrize("path", case_files("dp.05", "faulty"), ids=case_name)
def test_fault_is_named_with_its_line(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "dp.05", path)
    assert_cause(diagnosis, "dp.05")


@pytest.mark.parametrize("path", case_files("dp.05", "healthy"), ids=case_name)
def test_look_alike_is_left_alone(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    assert_nothing_found(diagnose_case(path))
