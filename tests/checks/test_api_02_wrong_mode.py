"""What api.02 says of single cases, beside what test_cases.py asks of all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from case_runner import Diagnosis, assert_found, case_files, finding

DiagnoseCase = Callable[[Path], Diagnosis]


def test_monte_carlo_dropout_is_reported_under_its_name(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("api.02", "reported_mc_dropout")
    entry = assert_found(diagnose_case(path), "api.02", path)
    assert "MC dropout" in entry["summary"]
    assert entry["confidence"] < 0.7


def test_frozen_batch_norm_is_said(diagnose_case: DiagnoseCase) -> None:
    (path,) = case_files("api.02", "healthy_frozen_batch_norm")
    assert "frozen" in finding(diagnose_case(path), "api.02")["summary"]
