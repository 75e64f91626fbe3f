"""tr.06 on its cases: every overlap is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("tr.06", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "tr.06", path)
    assert_cause(diagnosis, "tr.06")


@pytest.mark.parametrize("path", case_files("tr.06", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "tr.06")["conclusion"] in ("no_problem", "not_applicable", "not_checked")


def test_shared_samples_are_counted(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("tr.06", "faulty_slices_overlap")
    values = finding(diagnose_case(path), "tr.06")["evidence"][0]["values"]
    assert (values["shared"], values["samples"]) == (100, 397)


def test_split_after_copies_is_told(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("tr.06", "faulty_oversampled_before_split")
    assert "oversample the training part only" in finding(diagnose_case(path), "tr.06")["fix"]
