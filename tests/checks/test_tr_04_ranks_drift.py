"""tr.04 on whole scripts: ranks that drift apart, each in another way, and the ways of distributed training that are right."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name


@pytest.mark.parametrize("path", case_files("tr.04", "faulty"), ids=case_name)
def test_fault_is_named_with_its_line(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "tr.04", path)
    assert_cause(diagnosis, "tr.04")


@pytest.mark.parametrize("path", case_files("tr.04", "healthy"), ids=case_name)
def test_look_alike_is_left_alone(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    assert_nothing_found(diagnose_case(path))
