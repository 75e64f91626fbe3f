"""dp.03 on its cases: every fault is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("dp.03", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "dp.03", path)
    assert_cause(diagnosis, "dp.03")


@pytest.mark.parametrize("path", case_files("dp.03", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "dp.03")["conclusion"] in ("no_problem", "not_applicable", "not_checked")


@pytest.mark.parametrize("name", ["healthy_full_batch", "healthy_time_series", "healthy_language_model"])
def test_order_that_needs_no_shuffle_is_not_judged(diagnose_case: DiagnoseCase, name: str) -> None:
    (path,) = case_files("dp.03", name)
    assert finding(diagnose_case(path), "dp.03")["conclusion"] == "not_applicable"
