"""mp.03 on its cases: every fault is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("mp.03", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "mp.03", path)
    assert_cause(diagnosis, "mp.03")


@pytest.mark.parametrize("path", case_files("mp.03", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "mp.03")["conclusion"] in ("no_problem", "not_applicable", "not_checked")


def test_evidence_tells_the_true_norm(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("mp.03", "faulty_scaler_loop")
    values = finding(diagnose_case(path), "mp.03")["evidence"][0]["values"]
    assert values["scale"] == 1024.0
    assert values["limit"] == 1.0
    assert values["true_norm"] == pytest.approx(values["norm"] / 1024.0)
