"""tr.01 on its cases: every fault is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("tr.01", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "tr.01", path)
    assert_cause(diagnosis, "tr.01")


@pytest.mark.parametrize("path", case_files("tr.01", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "tr.01")["conclusion"] in ("no_problem", "not_applicable", "not_checked")
