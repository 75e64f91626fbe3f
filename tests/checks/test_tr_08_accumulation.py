"""tr.08 on whole scripts: losses that are not divided, batches that are lost, and accumulation as it should be."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding


@pytest.mark.parametrize("path", case_files("tr.08", "faulty"), ids=case_name)
def test_fault_is_named_with_its_line(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "tr.08", path)
    assert_cause(diagnosis, "tr.08")


@pytest.mark.parametrize("path", case_files("tr.08", "healthy"), ids=case_name)
def test_look_alike_is_left_alone(path: Path, diagnose_case: Callable[[Path], Diagnosis]) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "tr.08")["conclusion"] in ("no_problem", "not_checked")
