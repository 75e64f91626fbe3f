"""ds.02 on its cases: every fault is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("ds.02", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "ds.02", path)
    assert_cause(diagnosis, "ds.02")


@pytest.mark.parametrize("path", case_files("ds.02", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "ds.02")["conclusion"] in ("no_problem", "not_applicable", "not_checked")


def test_suspicious_samples_are_listed_with_their_place(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("ds.02", "faulty_digits_annotations")
    values = [evidence["values"] for evidence in finding(diagnose_case(path), "ds.02")["evidence"]]
    (listed,) = [value["suspicious"] for value in values if "suspicious" in value]
    assert all(sample["label"] != sample["predicted"] for sample in listed)
    assert {"fingerprint", "epoch", "batch", "row", "margin"} <= set(listed[0])
