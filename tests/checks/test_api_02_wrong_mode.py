"""api.02 on its cases: every fault is found on its line and named as the cause; the look-alikes stay quiet."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from case_runner import Diagnosis, assert_cause, assert_found, assert_nothing_found, case_files, case_name, finding

DiagnoseCase = Callable[[Path], Diagnosis]


@pytest.mark.parametrize("path", case_files("api.02", "faulty"), ids=case_name)
def test_fault_is_found_on_its_line(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_found(diagnosis, "api.02", path)
    assert_cause(diagnosis, "api.02")


@pytest.mark.parametrize("path", case_files("api.02", "healthy"), ids=case_name)
def test_look_alike_stays_quiet(diagnose_case: DiagnoseCase, path: Path) -> None:
    diagnosis = diagnose_case(path)
    assert_nothing_found(diagnosis)
    assert finding(diagnosis, "api.02")["conclusion"] in ("no_problem", "not_applicable", "not_checked")


def test_monte_carlo_dropout_is_reported_under_its_name(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("api.02", "reported_mc_dropout")
    entry = assert_found(diagnose_case(path), "api.02", path)
    assert "MC dropout" in entry["summary"]
    assert entry["confidence"] < 0.7


def test_frozen_batch_norm_is_said(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("api.02", "healthy_frozen_batch_norm")
    assert "frozen" in finding(diagnose_case(path), "api.02")["summary"]
